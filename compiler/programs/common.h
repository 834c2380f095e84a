/* Functions that many of the sequential test programs use. */
#ifndef COMMON_H
#define COMMON_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return a number from 0 to below 1 that depends on x alone. */
static inline double chance(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/* Return a hash of the data. Data that differs in any bit almost surely has another hash. */
static inline unsigned long long digest(const void *data, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
    return hash;
}

#endif
