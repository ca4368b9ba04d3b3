/*
 * A driver for fuzz targets without libFuzzer: runs the target over the files and folders given, each file whole and, if it is short,
 * cut at every byte. It finds old bugs again and truncation bugs; it does not search for new inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT_MAX 1024               /* files up to this size are also run cut at every byte */
#define FILE_MAX (4 * 1024 * 1024) /* larger files are no seeds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t files, runs, failures; /* nftw takes no argument for its callback */

/* The input lies in a block of exactly its size, so that AddressSanitizer sees a read past its end. */
static void run(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        failures++;
        return;
    }
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    runs++;
}

static void run_file(const char *path, size_t size) {
    uint8_t *bytes = malloc(size + 1);
    FILE *file = fopen(path, "rb");
    if (bytes == NULL || file == NULL || fread(bytes, 1, size, file) != size) {
        fprintf(stderr, "cannot read %s\n", path);
        failures++;
    } else {
        files++;
        run(bytes, size);
        for (size_t cut = 0; size <= CUT_MAX && cut < size; cut++) {
            run(bytes, cut);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    free(bytes);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)ftw;
    if (type == FTW_F && st->st_size <= FILE_MAX) {
        run_file(path, (size_t)st->st_size);
    }
    return 0;
}

int main(int argc, char **argv) {
    run(NULL, 0);
    for (int i = 1; i < argc; i++) {
        if (nftw(argv[i], visit, 16, FTW_PHYS) != 0) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            failures++;
        }
    }
    printf("%zu files, %zu runs\n", files, runs);
    if (files == 0) {
        printf("SKIP: no seeds present\n");
    }
    return failures > 0;
}
