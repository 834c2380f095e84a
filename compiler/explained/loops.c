/* Loops, each with the verdict that kilter cc must give in the comment before it. */
#define N 100
double u[N][N], v[N][N], w[N], s;
int idx[N];
double cost(double);
void f(int n, double *x) {
    /* refused: later blocks compute. Skew the loops: .* k = j \+ i, .* element j of row i of u in column k */
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            u[i][j] = (u[i - 1][j + 1] + u[i][j - 1]) / 6;
}
void g(void) {
    /* refused: 2 iterations before. .* Interchange the loops, and store the written arrays transposed */
    for (int i = 2; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = u[i - 2][j] * 0.5;
}
void h(void) {
    /* refused: columns of u .* Interchange the loops: the first subscript of u is the index */
    for (int i = 0; i < N; i++)
        for (int j = 1; j < N; j++)
            u[j][i] += u[j - 1][i];
}
void k(void) {
    /* refused: first subscript */
    for (int i = 0; i < N; i++)
        u[idx[i]][0] += 1;
}
void l(void) {
    /* doall */
    for (int i = 2; i < N - 2; i++)
        for (int j = 0; j < N; j++)
            v[i][j] = u[i - 2][j] + u[i + 2][j];
}
void m(void) {
    /* refused: any of its rows */
    for (int i = 0; i < N; i++) {
        double sum = w[i];
        for (int j = 0; j < i; j++)
            sum -= u[i][j] * w[j];
        w[i] = sum / u[i][i];
    }
}
void o(void) {
    /* refused: cost\(\) */
    for (int i = 0; i < N; i++)
        w[i] = cost(w[i]);
}
void p(void) {
    /* old */
    for (int i = 0; i < N - 1; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = 0.5 * (u[i][j] + u[i + 1][j]);
}
void q(double *x, int n) {
    /* doacross */
    for (int i = 1; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i * n + j] += x[(i - 1) * n + j];
}
void r(double *x, int n) {
    /* refused: within a row */
    for (int i = 1; i < n; i++)
        for (int j = 0; j <= n; j++)
            x[i * n + j] = 1;
}
void t(unsigned n, double (*x)[8]) {
    /* refused: wrap around */
    for (unsigned i = 0; i < n - 1; i++)
        x[i][0] = 1;
}
void y(void) {
    /* refused: carries a value */
    for (int i = 0; i < N; i++) {
        w[i] = s;
        s = u[i][0];
    }
}
void z(void) {
    /* refused: leaves the loop */
    for (int i = 0; i < N; i++) {
        if (w[i] > 1)
            break;
        w[i] = 1;
    }
}
void two(double *x, int n, int m) {
    /* refused: two lengths */
    for (int i = 0; i < 9; i++) {
        if (n > 1)
            x[i * n] = 1;
        if (m > 1)
            x[i * m] = 1;
    }
}
void mixed(double *x, int n) {
    /* refused: with rows and without */
    for (int i = 1; i < 9; i++)
        if (n > 1)
            x[i * n] = x[5];
}
int count[N], total;
unsigned natural[N];
static void some(int i) {
    if (i % 3)
        return;
    s = i;
}
void partial(void) {
    /* refused: carries a value */
    for (int i = 0; i < N; i++)
        count[i] = total++;
}
void cut(void) {
    /* refused: carries a value */
    for (int i = 0; i < N; i++)
        total *= 1.5;
}
void signs(void) {
    /* refused: carries a value */
    for (int i = 0; i < N; i++)
        if (natural[i] > total)
            total = natural[i];
}
void narrow(void) {
    /* refused: carries a value */
    for (int i = 0; i < N; i++)
        if (count[i] > total)
            total = (char)count[i];
}
void early(void) {
    /* refused: carries a value */
    for (int i = 0; i < N; i++) {
        some(i);
        w[i] = s;
    }
}
void address(void) {
    int sum = 0, *p = &sum;
    /* refused: address of sum */
    for (int i = 0; i < N; i++) {
        sum += 2;
        count[i] = *p;
    }
}
void loaded(double **x) {
    /* refused: which memory this changes */
    for (int i = 0; i < N; i++)
        x[i][0] = 1;
}
double *leads[N];
void stored(void) {
    /* refused: a pointer is stored */
    for (int i = 0; i < N; i++)
        leads[i] = v[i];
}
union {
    double flat[4], square[2][2];
} both[N];
void shared(void) {
    /* refused: which memory */
    for (int i = 1; i < N; i++)
        both[i].square[1][1] = both[i - 1].flat[3];
}
void index_of_both(void) {
    int i;
    /* refused: must not change i|changes the index */
    for (i = 0; i < N; i++)
        for (i = 3; i < 5; i++)
            w[i] = 1;
}
void parameter(int n, double x[n][n], double y[n][n]) {
    /* doall */
    for (int i = 1; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i][j] = y[i - 1][j];
}
volatile double device[N];
void devices(void) {
    /* refused: is volatile */
    for (int i = 0; i < N; i++)
        device[i] = i;
}
void endless(void) {
    /* refused: carries a value */
    for (int i = 0; i < N; i++) {
        for (;;) {
            if (i % 3)
                break;
            total = i;
            break;
        }
        count[i] = total;
    }
}
void ended(void) {
    /* refused: break and return do not end early */
    for (int i = 1; i < N; i++)
        for (int j = 1; j < N; j++) {
            if (u[i - 1][j] > 40)
                break;
            u[i][j] = u[i - 1][j] + u[i][j - 1];
        }
}
static void row(double *x, const double *y) {
    for (int j = 1; j < N; j++) {
        if (y[j] > 40)
            return;
        x[j] = y[j] + x[j - 1];
    }
}
void returned(void) {
    /* refused: break and return do not end early */
    for (int i = 1; i < N; i++)
        row(u[i], u[i - 1]);
}
void old_narrow(x, k) double *x;
unsigned char k;
{ x[k] = k; }
void old_style(void) {
    /* refused: first subscript */
    for (int i = 0; i < N; i++)
        old_narrow(w, i);
}
void backwards(void) {
    /* refused: cannot tell which memory */
    for (int i = 0; i < N; i++)
        i[w] = i;
}
void seen(void) {
    int i, *at = &i;
    /* refused: the address of i is taken */
    for (i = 0; i < N; i++)
        w[i] = *at;
}
void sums(void) {
    /* refused: Interchange the loops: the first subscript of w */
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            w[j] += u[i][j];
}
void leaning(void) {
    /* refused: columns of u .* Store u transposed */
    for (int i = 1; i < N; i++)
        for (int j = 0; j < N - 1; j++)
            u[j][i] = u[j + 1][i - 1];
}
void diagonal(void) {
    /* refused: columns of u .* Store u transposed */
    for (int i = 1; i < N; i++) {
        u[5][i] = 1;
        u[6][i] = u[5][i - 1];
    }
}
void steep(void) {
    /* refused: k = j \+ 3 \* i, */
    for (int i = N - 2; i >= 0; i--)
        for (int j = N - 4; j >= 3; j--)
            u[i][j] = u[i + 1][j - 3] + u[i + 1][j] + u[i][j + 1];
}
void both_ways(void) {
    /* refused: far before\. None */
    for (int i = 2; i < N; i++)
        for (int j = 1; j < N; j++)
            u[i][j] = u[i - 2][j] + u[i][j - 1] + u[i - 1][j];
}
void skewed(void) {
    /* doacross */
    for (int i = 1; i < N / 2; i++)
        for (int k = 1 + i; k < N / 2 - 1 + i; k++)
            u[i][k] = (u[i - 1][k] + u[i - 1][k - 1] + u[i][k - 1]) / 6;
}
