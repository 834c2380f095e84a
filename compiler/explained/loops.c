/* The comment before each loop has the verdict that kilter cc must give, and words of the reason. */
#include <stddef.h>
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
    /* refused: unsigned numbers may wrap around */
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
    /* refused: both with a row, .* and without one */
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
    /* refused: no break or return ends early */
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
    /* refused: no break or return ends early */
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

/* --- limits, strides and sizes that are members of structures --- */

struct inner {
    int n;
    double x;
};
struct grid {
    int n, m;
    size_t count;
    const struct inner *leads;
    struct inner part, parts[3];
    volatile int moving;
    unsigned bits : 5;
    union {
        int whole;
        float half;
    };
} grids[4], only;
extern struct grid elsewhere[];
void members(const struct grid *g, double (*restrict x)[g->m]) {
    /* doall */
    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < g->m; j++)
            x[i][j] = 1;
}
void member_stride(const struct grid *g, double *x) {
    /* doacross */
    for (int i = 1; i < g->n; i++)
        for (int j = 0; j < g->m; j++)
            x[i * g->m + j] += x[(i - 1) * g->m + j];
}
void member_position(const struct grid *g, double *x) {
    /* refused: within a row */
    for (int i = 1; i < g->n; i++)
        for (int j = 0; j < g->n; j++)
            x[i * g->m + j] = 1;
}
void member_strides(const struct grid *g, double *x) {
    /* refused: two lengths */
    for (int i = 0; i < g->n; i++) {
        if (g->m > 1)
            x[i * g->m] = 1;
        if (g->n > 1)
            x[i * g->n] = 1;
    }
}
void unsigned_member(const struct grid *g) {
    /* refused: unsigned numbers may wrap around */
    for (size_t i = 0; i < g->count - 1; i++)
        w[i] = 1;
}
void declared_members(void) {
    /* doall */
    for (int i = only.part.n; i < grids[3].n - 1; i++)
        for (int j = 0; j < grids[0].part.n; j++)
            u[i][j] = 1;
}
void outside_of_array(void) {
    /* refused: limits */
    for (int i = 0; i < N && i < grids[i].n; i++)
        w[i] = 1;
    /* refused: limits */
    for (int i = 0; i < (u[0][0] > 1 ? elsewhere[2].n : 1); i++)
        w[i] = 1;
}
void perhaps(const struct grid *g) {
    /* refused: limits */
    for (int i = 0; i < (g ? g->n : 0); i++)
        w[i] = 1;
    /* refused: limits */
    for (int i = 0; g && i < g->n; i++)
        w[i] = 1;
}
void not_all(const struct grid *g) {
    /* refused: limits */
    for (int i = 0; i < g->moving; i++)
        w[i] = 1;
    /* refused: limits */
    for (int i = 0; i < (int)g->bits; i++)
        w[i] = 1;
    /* refused: limits */
    for (int i = 0; i < g->whole; i++)
        w[i] = 1;
    /* refused: limits|which memory */
    for (int i = 0; i < g->leads->n; i++)
        w[i] = 1;
    /* refused: limits */
    for (int i = 0; i < g->parts[1].n; i++)
        w[i] = 1;
}
void changes_member(struct grid *g) {
    /* refused: uses g->n as a number, and changes the memory of g|written */
    for (int i = 0; i < g->n; i++) {
        w[i] = 1;
        g->n = 5;
    }
}
static void grow(struct grid *g) {
    g->n++;
}
static void put(int *at) {
    *at = 3;
}
void changes_in_function(struct grid *g) {
    /* refused: the loop uses .* as a number, and changes the memory of g|written */
    for (int i = 0; i < g->n; i++) {
        w[i] = 1;
        grow(g);
    }
    /* refused: the loop uses .* as a number, and changes the memory of g|written */
    for (int i = 0; i < g->n; i++) {
        w[i] = 1;
        put(&g->n);
    }
}
void changes_whole(struct grid *g) {
    /* refused: the loop uses .* as a number, and changes the memory of g|written */
    for (int i = 0; i < g->n; i++) {
        w[i] = 1;
        *g = only;
    }
    /* refused: limits|carries */
    for (int i = 0; i < only.n; i++) {
        w[i] = 1;
        only = *g;
    }
    /* refused: carries|changes the memory */
    for (int i = 0; i < only.n; i++) {
        w[i] = 1;
        only.m = i;
    }
}
void changes_element(void) {
    /* refused: changes the memory of grids|written */
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < grids[2].m; j++)
            grids[i].m += j;
}
void moves_on(struct grid *g) {
    /* refused: limits|a pointer from outside */
    for (int i = 0; i < g->n; i++) {
        w[i] = 1;
        g++;
    }
}
static double first(const struct inner *s, const double *x) {
    double all = 0;
    for (int j = 0; j < s->n; j++)
        all += x[j * s->n];
    return all;
}
void part_of_another(const struct grid *g) { /* s->n is g->part.n, and not g->n */
    /* doall */
    for (int i = 0; i < g->n; i++)
        w[i] = first(&g->part, u[i]);
}
enum sign { NEGATIVE = -1, POSITIVE };
struct signs {
    enum sign first;
};
void negative(enum sign first, const struct signs *s) {
    /* refused: first subscript */
    for (int i = 1; i < N; i++)
        for (long j = first; j < 1; j++)
            w[i + j] += 1;
    /* refused: first subscript */
    for (int i = 1 + s->first; i < N; i++)
        for (long j = s->first; j < 1; j++)
            w[i + j] += 1;
}
