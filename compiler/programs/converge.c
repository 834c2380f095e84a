#include "common.h"

#define N 30

static double u[N][N], v[N][N];

static void start(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = v[i][j] = i == 0 ? 1 : 0;
}

int main(void) {
    double change;
    int steps = 0;
    start();
    do {
        change = 0;
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) {
                v[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
                change = fmax(change, fabs(v[i][j] - u[i][j]));
            }
#pragma kilter loop
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                u[i][j] = v[i][j];
        steps++;
        if (steps % 10 == 0)
            printf("%d %.17g\n", steps, change);
    } while (change > 1e-2 && steps < 60);
    printf("%d %016llx\n", steps, digest(u, sizeof u));
    return 0;
}
