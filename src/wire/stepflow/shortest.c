/*
 * wire/stepflow/shortest.c: Schubfach, after R. Giulietti, "The Schubfach way to render doubles". A double stands for all
 * numbers up to half way to its neighbours. Let 10^k be the largest power of ten that is no wider than this range: then
 * at most one multiple of 10^(k+1) lies in it, which is the answer, and if there is none, the nearest multiple of 10^k.
 *
 * The bounds of the range are divided by that power, that is multiplied by its inverse in 128 bits, of which only the
 * whole part counts, and whether something follows it: the paper shows that these bits are enough to compare by.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/shortest.h"
#include <string.h>

typedef struct wide {
    uint64_t high, low;
} wide;

static wide multiply(uint64_t a, uint64_t b) {
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t low = a_low * b_low, cross = a_high * b_low + (low >> 32);
    uint64_t middle = a_low * b_high + (uint32_t)cross;
    return (wide){a_high * b_high + (cross >> 32) + (middle >> 32), middle << 32 | (uint32_t)low};
}

/* ---- powers of ten, scaled by powers of two so that their highest bit is set ---- */

#define FIRST_POWER (-300)
#define POWER_STEP 20

/* Every twentieth in 192 bits, rounded up. */
static const uint64_t powers[][3] = {
    {0xab70fe17c79ac6ca, 0x6dbd630a48aaf406, 0x8cc946f70d834e0c}, /* -300 */
    {0xe858ad248f5c22c9, 0xd1b3400f8f9cff68, 0xf910f9f648232f15}, /* -280 */
    {0x9d71ac8fada6c9b5, 0x6f773fc3603db4a9, 0x463d96ff273dc67e}, /* -260 */
    {0xd5605fcdcf32e1d6, 0xfb1e4a9a90880a64, 0xeb30854f603da8fd}, /* -240 */
    {0x9096ea6f3848984f, 0x3ff0d2c85def7621, 0x94bf6773709bddac}, /* -220 */
    {0xc3f490aa77bd60fc, 0xbedbfc4411068a9c, 0xf7954e1cea8679b2}, /* -200 */
    {0x84c8d4dfd2c63f3b, 0x29ecd9f40041e073, 0x75a99f7943138e74}, /* -180 */
    {0xb3f4e093db73a093, 0x59ed216765690f56, 0x8fe5b452e6b166ce}, /* -160 */
    {0xf3e2f893dec3f126, 0x5a89dba3c3efccfa, 0xd8ecb58659be9c91}, /* -140 */
    {0xa54394fe1eedb8fe, 0xc2974eb4ee658828, 0x9f36c7501c2ffa81}, /* -120 */
    {0xdff9772470297ebd, 0x59787e2b93bc56f7, 0x40626443927a9c5c}, /* -100 */
    {0x97c560ba6b0919a5, 0xdccd879fc967d41a, 0x021da8c6f15375a2}, /* -80 */
    {0xcdb02555653131b6, 0x3792f412cb06794d, 0x256bfa5628f185fa}, /* -60 */
    {0x8b61313bbabce2c6, 0x2323ac4b3b3da015, 0x3b62be7bc1a0042c}, /* -40 */
    {0xbce5086492111aea, 0x88f4bb1ca6bcf584, 0x181ea8059f76532b}, /* -20 */
    {0x8000000000000000, 0x0000000000000000, 0x0000000000000000}, /* 0 */
    {0xad78ebc5ac620000, 0x0000000000000000, 0x0000000000000000}, /* 20 */
    {0xeb194f8e1ae525fd, 0x5dcfab0800000000, 0x0000000000000000}, /* 40 */
    {0x9f4f2726179a2245, 0x01d762422c946590, 0xd910000000000000}, /* 60 */
    {0xd7e77a8f87daf7fb, 0xdc33745ec97be906, 0x3298e889d933b040}, /* 80 */
    {0x924d692ca61be758, 0x593c2626705f9c56, 0x72047108d3e55593}, /* 100 */
    {0xc646d63501a1511d, 0xb281e1fd541501b8, 0xbfc0ba97646c0c90}, /* 120 */
    {0x865b86925b9bc5c2, 0x0b8a2392ba45a9b2, 0x5c6658d409fb8bf8}, /* 140 */
    {0xb616a12b7fe617aa, 0x577b986b314d6009, 0x2381cf8591999d64}, /* 160 */
    {0xf6c69a72a3989f5b, 0x8aad549e57273d45, 0x0e4709b7db8059dd}, /* 180 */
    {0xa738c6bebb12d16c, 0xb428f8ac016561db, 0x40a0f74cda221399}, /* 200 */
    {0xe2a0b5dc971f303a, 0x2e44ae64840fd61d, 0xe028965c3f580abd}, /* 220 */
    {0x9991a6f3d6bf1765, 0xacca6da1e0a8ef29, 0x036ee4519d59a839}, /* 240 */
    {0xd01fef10a657842c, 0x2d2b7569b0432d85, 0x05ff7caf730b919e}, /* 260 */
    {0x8d07e33455637eb2, 0xdb0b487b6423e1e8, 0x7ec63730f500b407}, /* 280 */
    {0xbf21e44003acdd2c, 0xe0470a63e6bd56c3, 0x52522c084fc8e10f}, /* 300 */
    {0x81842f29f2cce375, 0xe6a1158300d46640, 0x21ceb9ec7b8c62ee}, /* 320 */
};

/* Those between: ten to the power of 0 to 19. */
static const uint64_t tens[POWER_STEP] = {
    0x8000000000000000, 0xa000000000000000, 0xc800000000000000, 0xfa00000000000000, 0x9c40000000000000,
    0xc350000000000000, 0xf424000000000000, 0x9896800000000000, 0xbebc200000000000, 0xee6b280000000000,
    0x9502f90000000000, 0xba43b74000000000, 0xe8d4a51000000000, 0x9184e72a00000000, 0xb5e620f480000000,
    0xe35fa931a0000000, 0x8e1bc9bf04000000, 0xb1a2bc2ec5000000, 0xde0b6b3a76400000, 0x8ac7230489e80000,
};

/*
 * The product of the two tables is too large by less than 2^64 in 256 bits, so its upper half is that of the power
 * unless the lower half is below that; it never is, but for the powers that are exact.
 */
void ew__power_of_ten(int k, uint64_t ret[2]) {
    unsigned index = (unsigned)(k - FIRST_POWER);
    const uint64_t *power = powers[index / POWER_STEP], ten = tens[index % POWER_STEP];
    wide a = multiply(power[0], ten), b = multiply(power[1], ten), c = multiply(power[2], ten);
    uint64_t w1 = b.low + c.high;
    b.high += w1 < b.low; /* cannot overflow: the high half of a product is at most 2^64 - 2 */
    uint64_t w2 = a.low + b.high, w3 = a.high + (w2 < a.low), w0 = c.low;
    if (w3 >> 63 == 0) {
        w3 = w3 << 1 | w2 >> 63;
        w2 = w2 << 1 | w1 >> 63;
        w1 = w1 << 1 | w0 >> 63;
        w0 <<= 1;
    }
    bool more = (w1 | w0) != 0;
    ret[1] = w2 + more;
    ret[0] = w3 + (more && ret[1] == 0);
}

/* floor(log10(2^q)), floor(log10(3/4 * 2^q)) and floor(log2(10^k)) for all q and k of doubles; >> rounds down. */
static int log10_of_power(int q) { return (q * 1262611) >> 22; }
static int log10_of_three_quarters(int q) { return (q * 1262611 - 524031) >> 22; }
static int log2_of_power_of_ten(int k) { return (k * 1741647) >> 19; }

/* ---- the digits ---- */

/* The whole part of the product, its lowest bit set if something follows. */
static uint64_t scaled(const uint64_t power[2], uint64_t number) {
    wide low = multiply(power[1], number), high = multiply(power[0], number);
    uint64_t rest = high.low + low.high;
    return (high.high + (rest < high.low)) | (rest > 1);
}

/* Takes zeros off the end. */
static uint64_t finish(uint64_t digits, int exponent, int *ret_exponent) {
    while (digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    *ret_exponent = exponent;
    return digits;
}

uint64_t ew__shortest(double number, int *ret_exponent) {
    uint64_t bits, power[2];
    memcpy(&bits, &number, sizeof bits);
    uint64_t c = bits & (((uint64_t)1 << 52) - 1);
    int q = (int)(bits >> 52 & 0x7ff);
    bool near_below = c == 0 && q > 1; /* a power of two: its lower neighbour is only half as far away */
    if (q != 0) {
        c |= (uint64_t)1 << 52;
        q--;
    }
    q -= 1074;
    /* The number is c * 2^q; all of it is multiplied by 4 from here on, so that the bounds are whole. */
    bool even = c % 2 == 0; /* then the bounds themselves are read as this number, too */
    int k = near_below ? log10_of_three_quarters(q) : log10_of_power(q);
    int shift = q + log2_of_power_of_ten(-k) + 1;
    ew__power_of_ten(-k, power);
    uint64_t lower = scaled(power, (4 * c - 2 + near_below) << shift) + !even;
    uint64_t middle = scaled(power, (4 * c) << shift);
    uint64_t upper = scaled(power, (4 * c + 2) << shift) - !even;
    uint64_t below = middle / 4, tenth = below / 10; /* the candidates are these and their successors */
    bool shorter_below = lower <= 40 * tenth, shorter_above = 40 * tenth + 40 <= upper;
    if (tenth > 0 && shorter_below != shorter_above) {
        return finish(tenth + shorter_above, k + 1, ret_exponent);
    }
    bool is_in = lower <= 4 * below, next_is_in = 4 * below + 4 <= upper;
    uint64_t half = 4 * below + 2;
    bool up = is_in != next_is_in ? next_is_in : middle > half || (middle == half && below % 2 != 0);
    return finish(below + up, k, ret_exponent);
}
