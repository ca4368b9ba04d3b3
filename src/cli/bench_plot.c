/*
 * cli/bench_plot.c: latency by percentile, drawn as HdrHistogram draws it: to the right the percentile, each nine as wide
 * as the one before, upwards the time, each factor of ten as high as the one before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"
#include <math.h>
#include <string.h>

#define NINES_MAX 6

typedef struct scale {
    int nines;        /* how many the x axis has: 2 is up to 99 % */
    double low, high; /* of the y axis, ns */
} scale;

static const char *const nine_names[NINES_MAX + 1] = {"0 %",     "90 %",     "99 %",     "99.9 %",
                                                      "99.99 %", "99.999 %", "99.9999 %"};

/* 1, 2 or 5 times a power of ten: the nearest such value at or below, or at or above. */
static double nice(double value, bool up) {
    double power = pow(10, floor(log10(value)));
    static const double steps[] = {1, 2, 5, 10};
    double best = power;
    for (size_t i = 0; i < 4; i++) {
        double step = steps[i] * power;
        if (up && step >= value * 0.999999) {
            return step;
        }
        best = !up && step <= value * 1.000001 ? step : best;
    }
    return best;
}

static double next_nice(double value) { return nice(value * 1.5, true); }

/* As many nines as there are calls to tell them from one another. */
static scale scale_of(const ew__bench_result *result) {
    const ew__hdr *hdr = result->latency;
    double low = (double)hdr->min, high = (double)hdr->max;
    if (result->first_chunk && result->first_chunk->n > 0 && (double)result->first_chunk->min < low) {
        low = (double)result->first_chunk->min;
    }
    scale s = {.nines = 1, .low = nice(low < 1 ? 1 : low, false), .high = nice(high < 10 ? 10 : high, true)};
    while (s.nines < NINES_MAX && 3 * pow(10, s.nines) < (double)hdr->n) {
        s.nines++;
    }
    s.nines = s.nines < 2 ? 2 : s.nines;
    if (s.high <= s.low) {
        s.high = next_nice(s.low);
    }
    return s;
}

/* 0 to 1 from the left to the right: which part of the calls is that? */
static double part_at(const scale *s, double x) { return 1 - pow(10, -x * s->nines); }

/* 0 to 1 from the bottom to the top. */
static double height_of(const scale *s, double ns) {
    double y = log(ns < s->low ? 1 : ns / s->low) / log(s->high / s->low);
    return y > 1 ? 1 : y;
}

/* ---- on a terminal ---- */

#define COLUMNS 60
#define ROWS 12

static void text_axis(const scale *s, bool utf8, ew__text *out) {
    char line[COLUMNS + 16];
    (void)ew__text_printf(out, "  %9s %s", "", utf8 ? "└" : "+");
    for (int x = 0; x < COLUMNS; x++) {
        bool tick = x > 0 && x * s->nines % COLUMNS < s->nines;
        (void)ew__text_cstr(out, utf8 ? (tick ? "┴" : "─") : (tick ? "+" : "-"));
    }
    memset(line, ' ', sizeof line);
    size_t end = 0;
    for (int i = 0; i <= s->nines; i++) {
        size_t n = strlen(nine_names[i]);
        size_t centre = (size_t)(i * COLUMNS / s->nines);
        size_t at = centre > n / 2 ? centre - n / 2 : 0;
        if (at >= end && at + n < sizeof line) {
            memcpy(line + at, nine_names[i], n);
            end = at + n + 1;
        }
    }
    (void)ew__text_printf(out, "\n  %9s  %.*s\n", "", (int)end, line);
}

ew_err ew__bench_plot_text(const ew__bench_result *result, bool utf8, ew__text *out) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    char label[32];
    if (result->latency->n == 0) {
        return EW_OK;
    }
    scale s = scale_of(result);
    double heights[COLUMNS];
    for (int x = 0; x < COLUMNS; x++) {
        heights[x] = ROWS * height_of(&s, (double)ew__hdr_at(result->latency, part_at(&s, (x + 0.5) / COLUMNS)));
    }
    (void)ew__text_cstr(out, "\n  latency by percentile\n");
    for (int row = ROWS - 1; row >= 0; row--) {
        double top = s.low * pow(s.high / s.low, (double)(row + 1) / ROWS);
        bool labelled = row == ROWS - 1 || row % 3 == 2;
        ew__bench_time(label, sizeof label, top);
        (void)ew__text_printf(out, "  %9s %s", labelled ? label : "", utf8 ? (labelled ? "┤" : "│") : "|");
        for (int x = 0; x < COLUMNS; x++) {
            double fill = heights[x] - row;
            int eighths = fill >= 1 ? 8 : fill <= 0 ? 0 : (int)(fill * 8);
            (void)ew__text_cstr(out, utf8 ? blocks[eighths] : eighths >= 4 ? "#" : " ");
        }
        (void)ew__text_cstr(out, "\n");
    }
    text_axis(&s, utf8, out);
    return ew__text_cstr(out, "");
}

/* ---- a picture ---- */

#define WIDTH 880
#define HEIGHT 480
#define LEFT 84
#define RIGHT 32
#define TOP 92
#define BOTTOM 64
#define POINTS 400
#define NAME_MAX_BYTES 40

/* A text of the user's, shortened to what a headline has room for. */
static void xml(ew__text *out, const char *text) {
    size_t n = strlen(text), most = n > NAME_MAX_BYTES ? NAME_MAX_BYTES : n;
    while (most > 0 && most < n && ((unsigned char)text[most] & 0xc0) == 0x80) {
        most--; /* not in the middle of a character */
    }
    for (const char *end = text + most; text < end; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<') {
            (void)ew__text_cstr(out, "&lt;");
        } else if (c == '&') {
            (void)ew__text_cstr(out, "&amp;");
        } else if (c == '"') {
            (void)ew__text_cstr(out, "&quot;");
        } else if (c < 0x20 || c == 0x7f) {
            (void)ew__text_cstr(out, " "); /* XML has no way to say them */
        } else {
            (void)ew__text_add(out, (ew_str){text, 1});
        }
    }
    if (most < n) {
        (void)ew__text_cstr(out, "...");
    }
}

static double x_of(double x) { return LEFT + x * (WIDTH - LEFT - RIGHT); }
static double y_of(double y) { return HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM); }

static void svg_head(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out) {
    char p50[32], p99[32];
    ew__bench_time(p50, sizeof p50, (double)ew__hdr_at(result->latency, 0.5));
    ew__bench_time(p99, sizeof p99, (double)ew__hdr_at(result->latency, 0.99));
    (void)ew__text_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
        "font-family=\"system-ui,Segoe UI,Helvetica,Arial,sans-serif\" font-size=\"13\">\n"
        "<style>\n"
        ".back{fill:#ffffff}.text{fill:#1f2933}.soft{fill:#5f6b7a}.grid{stroke:#e3e8ee;stroke-width:1}"
        ".axis{stroke:#8a96a3;stroke-width:1}\n"
        ".line{fill:none;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}"
        ".a{stroke:#2563eb}.b{stroke:#d97706}.area{fill:#2563eb;fill-opacity:.09}.da{fill:#2563eb}.db{fill:#d97706}\n"
        "@media (prefers-color-scheme:dark){.back{fill:#12161c}.text{fill:#e6eaf0}.soft{fill:#9aa5b1}"
        ".grid{stroke:#262d36}.axis{stroke:#5f6b7a}.a{stroke:#6ea8fe}.b{stroke:#f6ad55}.area{fill:#6ea8fe;"
        "fill-opacity:.14}.da{fill:#6ea8fe}.db{fill:#f6ad55}}\n"
        "</style>\n<title>Latency by percentile</title>\n<rect class=\"back\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n"
        "<text class=\"text\" x=\"%d\" y=\"34\" font-size=\"18\" font-weight=\"600\">",
        WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    xml(out, plan->calling.words[1]);
    (void)ew__text_cstr(out, " at ");
    xml(out, plan->calling.words[0]);
    (void)ew__text_printf(out, "</text>\n<text class=\"soft\" x=\"%d\" y=\"56\">%llu calls in %.1f s, %.0f/s; ", LEFT,
                          (unsigned long long)result->calls, result->seconds,
                          result->seconds > 0 ? (double)result->calls / result->seconds : 0);
    if (plan->rate > 0) {
        (void)ew__text_printf(out, "%g/s asked for, ", plan->rate);
    }
    (void)ew__text_printf(out, "%u connections, %u calls at a time; p50 %s, p99 %s</text>\n", plan->links, plan->slots,
                          p50, p99);
}

static void svg_grid(const scale *s, ew__text *out) {
    char label[32];
    double tick = s->low;
    while (tick <= s->high * 1.001) {
        double y = y_of(height_of(s, tick));
        ew__bench_time(label, sizeof label, tick);
        (void)ew__text_printf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                              WIDTH - RIGHT, y, y);
        const char *unit = strchr(label, ' ');
        (void)ew__text_printf(out, "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*s%s</text>\n",
                              LEFT - 10, y + 4.5, (int)strcspn(label, ". "), label, unit ? unit : "");
        tick = next_nice(tick);
    }
    for (int i = 0; i <= s->nines; i++) {
        double x = x_of((double)i / s->nines);
        (void)ew__text_printf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, TOP,
                              HEIGHT - BOTTOM);
        (void)ew__text_printf(out, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
                              HEIGHT - BOTTOM + 22, nine_names[i]);
    }
    (void)ew__text_printf(out, "<path class=\"axis\" fill=\"none\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
                          WIDTH - RIGHT);
    (void)ew__text_printf(out, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">percentile</text>\n",
                          (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16);
    (void)ew__text_printf(out, "<text class=\"soft\" x=\"%d\" y=\"%d\">latency</text>\n", LEFT - 60, TOP - 10);
}

/* The points of a line; those that lie on the way between their neighbours are left out. */
static void svg_points(const scale *s, const ew__hdr *hdr, ew__text *out) {
    uint64_t before = 0;
    for (int i = 0; i <= POINTS; i++) {
        double x = (double)i / POINTS;
        uint64_t value = ew__hdr_at(hdr, part_at(s, x));
        uint64_t after = i < POINTS ? ew__hdr_at(hdr, part_at(s, (double)(i + 1) / POINTS)) : 0;
        if (i == 0 || value != before || value != after) {
            (void)ew__text_printf(out, "%s%.1f %.1f", i == 0 ? "" : "L", x_of(x), y_of(height_of(s, (double)value)));
        }
        before = value;
    }
}

static void svg_legend(int at, const char *class, const char *name, ew__text *out) {
    (void)ew__text_printf(out,
                          "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"4\" rx=\"2\"/>"
                          "<text class=\"text\" x=\"%d\" y=\"%d\">%s</text>\n",
                          class, LEFT + at, TOP - 15, LEFT + at + 20, TOP - 10, name);
}

ew_err ew__bench_plot_svg(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out) {
    svg_head(plan, result, out);
    if (result->latency->n == 0) {
        return ew__text_cstr(out, "<text class=\"soft\" x=\"84\" y=\"240\">no call was answered</text>\n</svg>\n");
    }
    scale s = scale_of(result);
    svg_grid(&s, out);
    (void)ew__text_printf(out, "<path class=\"area\" d=\"M%d %dL", LEFT, HEIGHT - BOTTOM);
    svg_points(&s, result->latency, out);
    (void)ew__text_printf(out, "V%dZ\"/>\n", HEIGHT - BOTTOM);
    if (result->first_chunk && result->first_chunk->n > 0) {
        (void)ew__text_cstr(out, "<path class=\"line b\" d=\"M");
        svg_points(&s, result->first_chunk, out);
        (void)ew__text_cstr(out, "\"/>\n");
        svg_legend(20, "da", "to the end", out);
        svg_legend(140, "db", "to the first chunk", out);
    }
    (void)ew__text_cstr(out, "<path class=\"line a\" d=\"M");
    svg_points(&s, result->latency, out);
    return ew__text_cstr(out, "\"/>\n</svg>\n");
}
