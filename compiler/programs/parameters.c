/* Parameters that are declared as arrays are pointers. */
#include "common.h"

static void sweep(int n, int m, double a[n][m], double b[n][m]) {
#pragma kilter loop
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < m - 1; j++)
            b[i][j] = a[i - 1][j] + a[i + 1][j] - a[i][j - 1];
}

static double mix(int n, int m, double a[n][m]) {
    double s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            s = s * 1.01 + a[i][j];
    return s;
}

static void set(double row[9], int k) {
    row[3] = k;
}

static int most(int n, int a[]) {
    int m = -99;
    a++;
#pragma kilter loop
    for (int i = 0; i < n - 1; i++)
        if (a[i] > m)
            m = a[i];
    return m;
}

int main(void) {
    static double a[20][9], b[20][9];
    int c[20];
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 9; j++)
            a[i][j] = chance((uint64_t)(i * 9 + j));
    for (int t = 0; t < 3; t++) {
        sweep(20, 9, a, b);
        set(b[5], t);
        sweep(17, 9, b, a);
        sweep(16, 9, a + 2, b);
        printf("%a %a\n", mix(20, 9, a), mix(20, 9, b));
    }
#pragma kilter loop
    for (int i = 0; i < 20; i++)
        c[i] = i * i % 11;
    int m = most(20, c);
    printf("%d\n", m);
}
