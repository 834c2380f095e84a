/* Pointers point to memory with fewer rows than the loop has iterations. A condition makes the loop skip the
 * rows after the end of this memory. */
#include "common.h"

enum { N = 10, M = 4 };
static char mask[N + 2], none[4 * N];
static double flat[96], wide[N - 1], tail;

static void guarded(double *x, int n) {
#pragma kilter loop
    for (int i = 0; i < n; i++)
        if (mask[i])
            x[i] += i + tail;
}

static void rows(int n, int m, double x[n][m]) {
#pragma kilter loop
    for (int i = 0; i < n; i++)
        if (mask[i])
            for (int j = 0; j < m; j++)
                x[i + 1][j] += i - j;
}

static void put(double *x, const char *set, int i) {
    if (!set[i])
        return;
    x[i + 2] = i;
}

static double automatic(int k) {
    double mine[N - 1];
    static double kept[N - 1];
    for (int i = 0; i < N - 1; i++)
        mine[i] = i + k;
    guarded(mine, N);
    guarded(kept, N);
    return mine[3] + mine[N - 2] + kept[5];
}

static void blocks(void) {
    double *u = malloc(M * sizeof *u), *v = malloc(M * sizeof *v);
    for (int i = 0; i < M; i++) {
        u[i] = i;
        v[i] = -i;
    }
#pragma kilter loop
    for (int i = 0; i < 4 * N; i++)
        if (none[i]) {
            u[i] += 2;
            v[i] = u[i];
        }
    printf("blocks %llu %llu\n", digest(u, M * sizeof *u), digest(v, M * sizeof *v));
    free(u);
    free(v);
}

int main(void) {
    double(*u)[M] = malloc(N * sizeof *u), *v = malloc(N * sizeof *v), *w = malloc(N * sizeof *w);
    int n = 7;
    double *part = malloc((size_t)(n * n - 3) * sizeof *part);
    for (int i = 0; i < N; i++) {
        mask[i] = i > 0 && i < N - 2 && i % 2;
        none[i] = i < M;
        v[i] = i;
        w[i] = 0;
        for (int j = 0; j < M; j++)
            u[i][j] = i;
    }
    for (int i = 0; i < n * n - 3; i++)
        part[i] = i;
    for (int t = 0; t < 2; t++) {
#pragma kilter loop
        for (int i = 0; i < N; i++)
            if (mask[i])
                for (int j = 0; j < M; j++)
                    u[i + 1][j] += i + j;
#pragma kilter loop
        for (int i = 0; i < N; i++)
            w[i] = mask[i] ? v[i - 1] + v[i + 1] : mask[i] && v[i + 1] > 3;
#pragma kilter loop
        for (int i = 0; i < N; i++)
            put(v, mask, i);
#pragma kilter loop
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n - 3; j++)
                part[i * n + j] += 0.5;
#pragma kilter loop
        for (int i = 0; i < N; i++)
            for (int j = 0; j < 6; j++)
                flat[i * 10 + j] += 0.5;
        guarded(wide, N);
        tail = t + 1;
    }
    double sum = automatic(1);
    sum += automatic(2);
    for (int k = 5; k < 8; k++) {
        double x[k][k - 2];
        memset(x, 0, sizeof x);
        rows(k - 1, k - 2, x);
        printf("%d %llu\n", k, digest(x, sizeof x));
    }
    blocks();
    printf("%llu %llu %llu\n", digest(u, N * sizeof *u), digest(v, N * sizeof *v), digest(w, N * sizeof *w));
    printf("%llu %llu %llu\n", digest(part, (size_t)(n * n - 3) * sizeof *part), digest(flat, sizeof flat),
           digest(wide, sizeof wide));
    printf("%g %g\n", sum, tail);
    free(u);
    free(v);
    free(w);
    free(part);
}
