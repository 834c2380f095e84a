/* Grey pictures, a bad camera that takes them, and a filter that removes its noise. */
#ifndef PICTURE_H
#define PICTURE_H

#include "loop_program.h"

typedef struct picture {
    size_t width, height;
    uint8_t *points;
} picture;

enum {
    REACH = 5, /* the filter reads at most this number of rows and columns on each side of a point */
    WHITE = 255,
};

/* --- pictures --- */

/* Draw a picture: a pattern of light hills, with a sharp edge across it. */
static inline picture draw_picture(size_t n) {
    picture p = {.width = n, .height = n, .points = allocate(n, n)};
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            p.points[i * n + j] =
                (uint8_t)(40 + i * 60 / n + j * 60 / n + (i / 16 + j / 16) % 2 * 40 + (i > j) * 30);
    return p;
}

/* Read a picture: a binary PGM file with one byte for each point, without comments. */
static inline picture load_picture(const settings *set) {
    FILE *file = fopen(set->picture, "rb");
    unsigned width = 0, height = 0, white = 0;
    if (!file || fscanf(file, "P5 %5u %5u %3u", &width, &height, &white) != 3 || fgetc(file) == EOF ||
        !width || !height || width > 20000 || height > 20000 || white != WHITE)
        refuse(set, set->picture,
               "not a binary PGM picture of 1 to 20000 points in each direction and 256 grey levels");
    picture p = {.width = width, .height = height, .points = allocate(height, width)};
    if (fread(p.points, width, height, file) != height)
        refuse(set, set->picture, "the file ends too early");
    fclose(file);
    return p;
}

static inline picture open_picture(const settings *set) {
    return set->picture ? load_picture(set) : draw_picture((size_t)set->n);
}

static inline int save_picture(const char *name, size_t width, size_t height, const void *points) {
    FILE *file = fopen(name, "wb");
    bool good = file && fprintf(file, "P5\n%zu %zu\n%d\n", width, height, WHITE) > 0 &&
                fwrite(points, width, height, file) == height;
    if ((file && fclose(file) != 0) || !good) {
        fprintf(stderr, "'%s' could not be written\n", name);
        return 1;
    }
    return 0;
}

/* --- the bad camera --- */

/* Take row i of a frame: copy it from the picture, and add salt-and-pepper noise. The noise is dense in a
 * band that moves down the picture. */
static inline void take_row(const picture *scene, int frame, size_t i, uint8_t *row) {
    size_t width = scene->width, height = scene->height;
    size_t band = (i + height - (size_t)frame * (height / 64 + 1) % height) % height;
    double noise = band < height / 4 ? 0.7 : 0.02;
    for (size_t j = 0; j < width; j++) {
        double draw = chance(((uint64_t)frame * height + i) * width + j);
        row[j] = draw >= noise ? scene->points[i * width + j] : draw < noise / 2 ? 0 : WHITE;
    }
}

/* --- the filter that removes noise --- */

/* Find the minimum, median and maximum of the points at most r rows and columns from (i, j); row i is row[0].
 */
static inline void window(size_t width, size_t height, size_t i, size_t j, size_t r, uint8_t (*row)[width],
                          uint8_t greys[3]) {
    unsigned seen[WHITE + 1] = {0}, count = 0;
    for (size_t k = i > r ? i - r : 0; k <= i + r && k < height; k++)
        for (size_t l = j > r ? j - r : 0; l <= j + r && l < width; l++, count++)
            seen[row[(ptrdiff_t)k - (ptrdiff_t)i][l]]++;
    unsigned upto = 0, grey = 0;
    for (int g = 0; g < 3; g++) {
        unsigned wanted = g == 0 ? 1 : g == 1 ? (count + 1) / 2 : count;
        while (upto < wanted)
            upto += seen[grey++];
        greys[g] = (uint8_t)(grey - 1);
    }
}

/* Remove the noise from a row by the method of Hwang and Haddad, 1995. The window grows until its median is
 * not noise. Only points with extreme values are changed. */
static inline void clean_row(size_t width, size_t height, size_t i, uint8_t (*row)[width], uint8_t *clean) {
    for (size_t j = 0; j < width; j++) {
        uint8_t greys[3] = {0}, point = row[0][j];
        for (size_t r = 1; r <= REACH && !(greys[0] < greys[1] && greys[1] < greys[2]); r++)
            window(width, height, i, j, r, row, greys);
        clean[j] = greys[0] < point && point < greys[2] ? point : greys[1];
    }
}

#endif
