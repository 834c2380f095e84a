#include "master.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* The values of the following constants were measured on the published problems ssn, 20term and storm. Other
 * values are not faster on these problems, so there are no options for them. */
/* The master drops a cut that was not active in this number of consecutive solves. The number is low
 * (AGE_FALLING) while candidates improve, because old cuts cost the master time. The number is high
 * (AGE_STUCK) while candidates do not improve, because old cuts become active again, as on 20term. On ssn,
 * the solve with AGE_FALLING = 5 takes two thirds of the time with 10. */
enum { AGE_FALLING = 5, AGE_STUCK = 20, POOR_WHEN_STUCK = 2 };
static const double RADIUS_FIRST = 1, RADIUS_MOST = 1e9;
/* a candidate becomes the incumbent if its cost decreases by at least this fraction of the predicted decrease
 */
static const double DECREASE = 1e-4;
/* a cut is added only if the candidate violates the cut by more than this relative amount */
static const double VIOLATION = 1e-9;
/* the next candidate may be made when this fraction of a candidate's cuts has arrived */
static const double AHEAD = 0.7;
/* the trust region restricts the master if a reduced cost at the region's boundary is above this value */
static const double PRICE = 1e-9;
/* two decisions count as the same if their relative distance is at most this */
static const double NEAR = 1e-9;

typedef struct row {
    int cluster; /* number of the cluster to which the cut belongs; −1: the cut is a feasibility cut */
    int made_at; /* number of the candidate at which the cut was made */
    int idle;    /* number of consecutive solves in which the cut was not active */
} row;

/* A candidate, and the state of the master when it made the candidate. */
typedef struct candidate {
    double *x, *theta;
    double model; /* optimum of the master when the candidate was made */
    /* cost of the incumbent, and radius Δ of the trust region, when the candidate was made */
    double parent, radius;
    bool at_face; /* true: the candidate is on the trust region's boundary */
    int number;   /* number of the candidate, from 1 on; 0: the slot is empty */
    /* for each cluster: the cluster's cut at this candidate; came: the cut has arrived; added: the cut is in
     * the table
     */
    double *value, *slope;
    bool *feasible, *came, *added;
    uint64_t *scenario;
    int cuts_came;
} candidate;

struct sp_master {
    const sp_problem *problem;
    sp_table *table;
    /* columns: number of columns of stage 1; in the table, one column θ for each cluster follows them */
    int columns, clusters;
    double gap;
    candidate *basket;       /* array of slots; each has a candidate that is being evaluated, or is empty */
    int slots, flying, made; /* slots: length of basket[]; flying: number of candidates that wait for cuts;
                                made: number of candidates so far */
    /* last optimum of the table */
    double *x, *theta;
    double model;
    /* decision of the incumbent (the best candidate so far); if there is none, the centre of the trust
     * region */
    double *centre, upper;
    bool incumbent;
    int centre_made_at;
    double radius;
    int poor; /* number of consecutive candidates that were worse than the incumbent */
    /* the cuts; in the table, their rows come after the rows of stage 1 */
    row *cut;
    size_t cuts, capacity;
    /* known[cluster]: true if the cluster has a cut; only then the cluster's θ is a free column */
    bool *known;
    /* working memory for adding and dropping cuts in one round */
    double *row_lower, *entry;
    int *row_start, *entry_column, *dropped;
    sp_progress progress;
};

static double first_stage_cost(const sp_master *m, const double *x) {
    double sum = m->problem->constant;
    for (int j = 0; j < m->columns; j++)
        sum += m->problem->stage[0].cost[j] * x[j];
    return sum;
}

/* ---- memory for candidates and the master ---- */

static bool make_candidate(candidate *c, size_t columns, size_t clusters) {
    c->x = calloc(columns + 1, sizeof(double));
    c->theta = calloc(clusters, sizeof(double));
    c->value = calloc(clusters, sizeof(double));
    c->slope = calloc(clusters * columns + 1, sizeof(double));
    c->feasible = calloc(clusters, sizeof(bool));
    c->came = calloc(clusters, sizeof(bool));
    c->added = calloc(clusters, sizeof(bool));
    c->scenario = calloc(clusters, sizeof(uint64_t));
    return c->x && c->theta && c->value && c->slope && c->feasible && c->came && c->added && c->scenario;
}

static void free_candidate(candidate *c) {
    free(c->x);
    free(c->theta);
    free(c->value);
    free(c->slope);
    free(c->feasible);
    free(c->came);
    free(c->added);
    free(c->scenario);
}

/* Return whether the entries of `cuts` cuts can be counted in an int, as CLP does. */
static bool is_countable(const sp_master *m, size_t cuts) {
    return (double)cuts * (m->columns + 1) <= INT_MAX;
}

static bool make_arrays(sp_master *m) {
    size_t n = (size_t)m->columns, t = (size_t)m->clusters, cuts = t * (size_t)m->slots;
    if (!is_countable(m, cuts))
        return false;
    m->basket = calloc((size_t)m->slots, sizeof *m->basket);
    for (int i = 0; m->basket && i < m->slots; i++)
        if (!make_candidate(&m->basket[i], n, t))
            return false;
    m->x = calloc(n + 1, sizeof(double));
    m->centre = calloc(n + 1, sizeof(double));
    m->theta = calloc(t, sizeof(double));
    m->known = calloc(t, sizeof(bool));
    m->row_lower = calloc(cuts, sizeof(double));
    m->row_start = calloc(cuts + 1, sizeof(int));
    m->entry = calloc(cuts * (n + 1), sizeof(double));
    m->entry_column = calloc(cuts * (n + 1), sizeof(int));
    return m->basket && m->x && m->centre && m->theta && m->known && m->row_lower && m->row_start &&
           m->entry && m->entry_column;
}

static void fill_program(const sp_master *m, sp_program *program) {
    const sp_stage *stage = &m->problem->stage[0];
    const sp_matrix *a = &m->problem->a;
    size_t n = (size_t)m->columns, entries = (size_t)a->start[m->columns];
    memcpy(program->matrix.start, a->start, (n + 1) * sizeof(int));
    memcpy(program->matrix.row, a->row, entries * sizeof(int));
    memcpy(program->matrix.value, a->value, entries * sizeof(double));
    memcpy(program->cost, stage->cost, n * sizeof(double));
    for (int t = 0; t < m->clusters; t++) {
        program->matrix.start[m->columns + t + 1] = (int)entries;
        program->cost[m->columns + t] = 1;
    }
    for (int i = 0; i < stage->rows; i++) {
        program->row_lower[i] = stage->rhs[i] + stage->below[i];
        program->row_upper[i] = stage->rhs[i] + stage->above[i];
    }
}

static kilter_status make_table(sp_master *m, kilter_error *error) {
    sp_program program;
    kilter_status status;
    if (sp_program_make(&program, m->problem->stage[0].rows, m->columns + m->clusters,
                        (size_t)m->problem->a.start[m->columns])) {
        fill_program(m, &program);
        status = sp_table_new(&program, &m->table, error);
    } else {
        status =
            sp_fail(error, KILTER_ERR_MEMORY,
                    "making the master of %d clusters: memory ran out; use fewer (--clusters)", m->clusters);
    }
    sp_program_free(&program);
    return status;
}

static double distance(const sp_master *m, const double *x) {
    double most = 0;
    for (int j = 0; j < m->columns; j++)
        most = fmax(most, fabs(x[j] - m->centre[j]));
    return most;
}

/* Make the optimum of the table (the master's linear program) a candidate. */
static void launch(sp_master *m, candidate *c) {
    memcpy(c->x, m->x, (size_t)m->columns * sizeof(double));
    memcpy(c->theta, m->theta, (size_t)m->clusters * sizeof(double));
    memset(c->came, 0, (size_t)m->clusters * sizeof(bool));
    memset(c->added, 0, (size_t)m->clusters * sizeof(bool));
    c->cuts_came = 0;
    c->model = m->model;
    c->parent = m->upper;
    c->radius = m->radius;
    c->at_face = distance(m, c->x) >= m->radius * (1 - 1e-9);
    c->number = ++m->made;
    m->flying++;
}

kilter_status sp_master_new(const sp_problem *problem, const sp_master_options *options, sp_master **master,
                            kilter_error *error) {
    assert(options->basket > 0);
    sp_master *m = calloc(1, sizeof *m);
    if (m) {
        m->problem = problem;
        m->columns = problem->stage[0].columns;
        m->clusters = options->clusters;
        m->slots = options->basket;
        m->gap = options->gap;
    }
    if (!m || !make_arrays(m)) {
        sp_master_free(m);
        return sp_fail(
            error, KILTER_ERR_MEMORY,
            "making the master of %d clusters: there is no room for their cuts; use fewer (--clusters)",
            options->clusters);
    }
    memcpy(m->x, options->start, (size_t)m->columns * sizeof(double));
    memcpy(m->centre, options->start, (size_t)m->columns * sizeof(double));
    m->radius = RADIUS_FIRST;
    m->model = -INFINITY;
    m->upper = INFINITY;
    m->progress = (sp_progress){.lower = -INFINITY, .scenario = UINT64_MAX};
    launch(m, &m->basket[0]);
    kilter_status status = make_table(m, error);
    if (status)
        sp_master_free(m);
    else
        *master = m;
    return status;
}

void sp_master_free(sp_master *m) {
    if (!m)
        return;
    sp_table_free(m->table);
    for (int i = 0; m->basket && i < m->slots; i++)
        free_candidate(&m->basket[i]);
    free(m->basket);
    free(m->x);
    free(m->centre);
    free(m->theta);
    free(m->known);
    free(m->row_lower);
    free(m->row_start);
    free(m->entry);
    free(m->entry_column);
    free(m->dropped);
    free(m->cut);
    free(m);
}

const double *sp_master_candidate(const sp_master *master, int slot) {
    return master->basket[slot].x;
}

const double *sp_master_incumbent(const sp_master *master) {
    return master->incumbent ? master->centre : NULL;
}

void sp_master_progress(const sp_master *m, sp_progress *progress) {
    *progress = m->progress;
    progress->upper = m->upper;
    progress->lower = fmin(m->progress.lower, m->upper); /* rounding may make the bound larger than `upper` */
    progress->model = m->model;
    progress->radius = m->radius;
    progress->cuts = (int)m->cuts;
}

void sp_master_take(sp_master *m, int slot, int cluster, const sp_cut *cut) {
    candidate *c = &m->basket[slot];
    c->feasible[cluster] = cut->feasible;
    c->value[cluster] = cut->value;
    c->scenario[cluster] = cut->scenario;
    memcpy(c->slope + (size_t)cluster * (size_t)m->columns, cut->slope, (size_t)m->columns * sizeof(double));
    c->cuts_came += !c->came[cluster];
    c->came[cluster] = true;
}

/* ---- adding and dropping the cuts of a round ---- */

static bool worth_adding(const sp_master *m, const candidate *c, int cluster) {
    if (!c->came[cluster] || c->added[cluster])
        return false;
    if (!c->feasible[cluster] || !m->known[cluster])
        return true;
    return c->value[cluster] > c->theta[cluster] + VIOLATION * (1 + fabs(c->value[cluster]));
}

/* Write a cut with slope g, made at the candidate z, as the row θ − g'x >= value − g'z. The row of a
 * feasibility cut has no θ. Return the index of the next row's first entry. */
static int write_row(sp_master *m, const candidate *c, int cluster, int row_at, int entry_at) {
    const double *slope = c->slope + (size_t)cluster * (size_t)m->columns;
    double lower = c->value[cluster];
    for (int j = 0; j < m->columns; j++) {
        lower -= slope[j] * c->x[j];
        if (slope[j] == 0)
            continue;
        m->entry_column[entry_at] = j;
        m->entry[entry_at++] = -slope[j];
    }
    if (c->feasible[cluster]) {
        m->entry_column[entry_at] = m->columns + cluster;
        m->entry[entry_at++] = 1;
    }
    m->row_lower[row_at] = lower;
    m->row_start[row_at + 1] = entry_at;
    return entry_at;
}

static kilter_status make_room(sp_master *m, kilter_error *error) {
    size_t needed = m->cuts + (size_t)m->clusters * (size_t)m->slots;
    if (needed <= m->capacity)
        return KILTER_OK;
    if (!is_countable(m, needed))
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "adding cuts: there are more than CLP can count; use fewer clusters (--clusters)");
    size_t capacity = 2 * needed;
    row *cut = realloc(m->cut, capacity * sizeof *cut);
    if (cut)
        m->cut = cut;
    int *dropped = realloc(m->dropped, capacity * sizeof *dropped);
    if (dropped)
        m->dropped = dropped;
    if (!cut || !dropped)
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "adding cuts: memory ran out; use fewer clusters (--clusters)");
    m->capacity = capacity;
    return KILTER_OK;
}

static void add_cuts_of(sp_master *m, candidate *c, int *rows, int *entries) {
    for (int t = 0; t < m->clusters; t++) {
        if (worth_adding(m, c, t)) {
            *entries = write_row(m, c, t, (*rows)++, *entries);
            m->cut[m->cuts++] = (row){c->feasible[t] ? t : -1, c->number, 0};
            m->known[t] |= c->feasible[t];
            if (!c->feasible[t])
                m->progress.scenario = c->scenario[t];
        }
        c->added[t] |= c->came[t];
    }
}

/* Return the candidate in the basket with the lowest number above `number`. Return NULL if there is no such
 * candidate. */
static candidate *next_of(const sp_master *m, int number) {
    candidate *next = NULL;
    for (int i = 0; i < m->slots; i++) {
        candidate *c = &m->basket[i];
        if (c->number > number && (!next || c->number < next->number))
            next = c;
    }
    return next;
}

static kilter_status add_cuts(sp_master *m, kilter_error *error) {
    kilter_status status = make_room(m, error);
    int rows = 0, entries = 0;
    for (candidate *c = next_of(m, 0); !status && c; c = next_of(m, c->number))
        add_cuts_of(m, c, &rows, &entries);
    return status
               ? status
               : sp_table_add(m->table,
                              &(sp_rows){rows, m->row_lower, m->row_start, m->entry_column, m->entry}, error);
}

/* Drop cuts that were inactive in too many consecutive solves. Keep feasibility cuts and cuts made at the
 * incumbent. */
static kilter_status drop_idle_cuts(sp_master *m, kilter_error *error) {
    int first = m->problem->stage[0].rows, drop = 0;
    int most = m->poor >= POOR_WHEN_STUCK ? AGE_STUCK : AGE_FALLING;
    size_t kept = 0;
    for (size_t i = 0; i < m->cuts; i++) {
        row *cut = &m->cut[i];
        cut->idle = sp_table_is_slack(m->table, first + (int)i) ? cut->idle + 1 : 0;
        if (cut->idle >= most && cut->cluster >= 0 && cut->made_at != m->centre_made_at)
            m->dropped[drop++] = first + (int)i;
        else
            m->cut[kept++] = *cut;
    }
    m->cuts = kept;
    return sp_table_drop(m->table, drop, m->dropped, error);
}

/* ---- judging a candidate whose cuts have arrived ---- */

/* Make the candidate the new incumbent. Return whether costs may fall further in this direction. The answer
 * is yes if the cost fell as predicted, and the candidate is on the boundary of the largest trust region. */
static bool accept(sp_master *m, const candidate *c, double cost) {
    bool as_predicted = m->incumbent && cost <= c->parent - 0.5 * (c->parent - c->model);
    bool falling = as_predicted && c->at_face && c->radius >= RADIUS_MOST;
    if (as_predicted && c->at_face)
        m->radius = fmax(m->radius, fmin(RADIUS_MOST, 2 * c->radius));
    memcpy(m->centre, c->x, (size_t)m->columns * sizeof(double));
    m->incumbent = true;
    m->centre_made_at = c->number;
    m->upper = cost;
    m->poor = 0;
    m->progress.major++;
    return falling;
}

static void reject(sp_master *m, const candidate *c, double cost) {
    double predicted = c->parent - c->model;
    double ratio = fmin(1, c->radius) * (cost - c->parent) / predicted;
    if (ratio > 0)
        m->poor++;
    if (ratio > 3 || (m->poor >= 3 && ratio > 1)) {
        m->radius = fmin(m->radius, c->radius / fmin(ratio, 4));
        m->poor = 0;
    }
}

/* Return the candidate's cost over the sample; return INFINITY if a scenario is infeasible. */
static double candidate_cost(const sp_master *m, const candidate *c) {
    double cost = first_stage_cost(m, c->x);
    for (int t = 0; t < m->clusters; t++)
        cost = c->feasible[t] ? cost + c->value[t] : INFINITY;
    return cost;
}

/* Make a candidate the incumbent if it costs no more than the present incumbent and reaches DECREASE of its
 * predicted decrease. Return whether costs may fall further in this direction, as accept() does. */
static bool judge(sp_master *m, const candidate *c) {
    double cost = candidate_cost(m, c);
    bool better = cost <= m->upper && cost <= c->parent - DECREASE * (c->parent - c->model);
    if (isfinite(cost) && (!m->incumbent || better))
        return accept(m, c, cost);
    if (isfinite(cost))
        reject(m, c, cost);
    else if (!m->incumbent) /* look for feasible decisions farther away */
        m->radius = fmin(RADIUS_MOST, 2 * m->radius);
    return false;
}

/* ---- making the next candidate ---- */

static void set_bounds(sp_master *m) {
    const sp_stage *stage = &m->problem->stage[0];
    for (int j = 0; j < m->columns; j++)
        sp_table_bound(m->table, j, fmax(stage->lower[j], m->centre[j] - m->radius),
                       fmin(stage->upper[j], m->centre[j] + m->radius));
    for (int t = 0; t < m->clusters; t++)
        sp_table_bound(m->table, m->columns + t, m->known[t] ? -INFINITY : 0, m->known[t] ? INFINITY : 0);
}

static sp_lp_status solve_table(sp_master *m) {
    set_bounds(m);
    sp_lp_status solved = sp_table_solve(m->table);
    if (solved != SP_LP_OPTIMAL)
        return solved;
    const double *point = sp_table_point(m->table);
    memcpy(m->x, point, (size_t)m->columns * sizeof(double));
    memcpy(m->theta, point + m->columns, (size_t)m->clusters * sizeof(double));
    m->model = first_stage_cost(m, m->x);
    for (int t = 0; t < m->clusters; t++)
        m->model += m->theta[t];
    return solved;
}

/* Return whether the trust region restricts the master. Call this function right after a solve. */
static bool held_back(const sp_master *m) {
    const sp_stage *stage = &m->problem->stage[0];
    const double *price = sp_table_reduced(m->table);
    for (int j = 0; j < m->columns; j++) {
        double low = m->centre[j] - m->radius, high = m->centre[j] + m->radius;
        double near = 1e-9 * (1 + fabs(m->centre[j]) + m->radius);
        bool at_low = low > stage->lower[j] && m->x[j] <= low + near;
        bool at_high = high < stage->upper[j] && m->x[j] >= high - near;
        if ((at_low || at_high) && fabs(price[j]) > PRICE)
            return true;
    }
    return false;
}

static bool close_enough(const sp_master *m) {
    return m->incumbent && m->upper - m->model <= m->gap * (1 + fabs(m->upper));
}

static double larger_radius(double radius) {
    return radius < RADIUS_MOST ? fmin(RADIUS_MOST, 10 * radius) : INFINITY;
}

static kilter_status gave_up(const sp_master *m, kilter_error *error) {
    return sp_fail(error, KILTER_ERR_TASK,
                   "solving the master after %d candidates, %zu cuts: CLP gave up; look for very large "
                   "or very small numbers in the problem, or ask for a larger --gap",
                   m->progress.evaluated, m->cuts);
}

/* Handle a master that has no optimum without a trust region. If costs still fall at the largest region, the
 * problem is unbounded. Otherwise the next candidate is the optimum within the largest region. */
static kilter_status go_to_the_edge(sp_master *m, bool falling, sp_step *step, kilter_error *error) {
    if (falling) {
        *step = SP_UNBOUNDED;
        return KILTER_OK;
    }
    m->radius = RADIUS_MOST;
    *step = SP_EVALUATE;
    return solve_table(m) == SP_LP_OPTIMAL ? KILTER_OK : gave_up(m, error);
}

/* Solve the master. If the trust region excludes the answer, enlarge the region, and at last solve without a
 * region. Set *step to the outcome. */
static kilter_status find_candidate(sp_master *m, bool falling, sp_step *step, kilter_error *error) {
    for (;; m->radius = larger_radius(m->radius)) {
        sp_lp_status solved = solve_table(m);
        kilter_status status = KILTER_OK;
        bool larger = m->radius < INFINITY;
        if (solved == SP_LP_INFEASIBLE && !m->incumbent) {
            *step = SP_INFEASIBLE;
        } else if (solved != SP_LP_OPTIMAL) {
            return larger ? gave_up(m, error) : go_to_the_edge(m, falling, step, error);
        } else {
            bool back = held_back(m);
            if (m->incumbent && !back)
                m->progress.lower = fmax(m->progress.lower, m->model);
            *step = close_enough(m) ? SP_SOLVED : SP_EVALUATE;
            larger = larger && back;
            status = drop_idle_cuts(m, error);
        }
        if (status || *step == SP_EVALUATE || !larger) {
            m->radius = fmin(m->radius, RADIUS_MOST);
            return status;
        }
    }
}

/* ---- candidates that are evaluated at the same time ---- */

static bool is_same(const sp_master *m, const candidate *c) {
    return memcmp(c->x, m->x, (size_t)m->columns * sizeof(double)) == 0;
}

/* Return a free slot for the next candidate; return −1 if all slots are full, or if the same candidate is
 * already being evaluated. */
static int place_of_next(const sp_master *m) {
    int place = -1;
    for (int i = m->slots - 1; i >= 0; i--) {
        if (m->basket[i].number == 0)
            place = i;
        else if (is_same(m, &m->basket[i]))
            return -1;
    }
    return place;
}

/* Return whether the master made the same candidate again without enough improvement. The candidate violates
 * its cuts by less than CLP's tolerance, so the next solve would make it once more. */
static bool is_stuck(const sp_master *m, const candidate *c) {
    double cost = candidate_cost(m, c), apart = 0;
    for (int j = 0; j < m->columns; j++)
        apart = fmax(apart, fabs(m->x[j] - c->x[j]) / (1 + fabs(c->x[j])));
    return isfinite(cost) && apart <= NEAR && cost > c->parent - DECREASE * (c->parent - c->model) &&
           m->model - c->model < 0.5 * (cost - c->model);
}

/* Fail if the master makes a candidate again that its feasibility cuts exclude. This happens if the candidate
 * violates the cuts by less than the master's tolerance. */
static kilter_status check_moved(const sp_master *m, const candidate *ended, kilter_error *error) {
    if (is_stuck(m, ended))
        return sp_fail(
            error, KILTER_ERR_TASK,
            "solving the master after %d candidates: the best one costs %.10g, and the remaining gap, "
            "%.1e, is below CLP's tolerance; ask for a larger --gap",
            m->progress.evaluated, m->upper, (m->upper - m->model) / (1 + fabs(m->upper)));
    if (isfinite(candidate_cost(m, ended)) || !is_same(m, ended))
        return KILTER_OK;
    return sp_fail(error, KILTER_ERR_TASK,
                   "solving the master after %d candidates: at a candidate that meets all feasibility cuts, "
                   "scenario %llu is infeasible by less than CLP's tolerance; look for very large or very "
                   "small numbers in the problem",
                   m->progress.evaluated, (unsigned long long)m->progress.scenario);
}

/* Judge the candidate `ended`, whose cuts have all arrived. Return whether costs may fall further in this
 * direction, as accept() does. */
static bool end_candidate(sp_master *m, candidate *ended) {
    m->progress.evaluated++;
    m->flying--;
    return judge(m, ended);
}

/* Return whether the master may make the next candidate now. The master needs an incumbent, a free slot, and
 * the fraction AHEAD of the cuts of candidate `c`. */
static bool may_go_ahead(const sp_master *m, const candidate *c) {
    return m->incumbent && m->flying < m->slots && c->cuts_came == (int)ceil(AHEAD * m->clusters);
}

kilter_status sp_master_next(sp_master *m, int slot, sp_step *step, int *next, kilter_error *error) {
    candidate *c = &m->basket[slot];
    bool ended = c->cuts_came == m->clusters;
    *step = SP_WAIT;
    if (!ended && !may_go_ahead(m, c))
        return KILTER_OK;
    bool falling = ended && end_candidate(m, c);
    if (falling)
        m->radius = INFINITY;
    kilter_status status = add_cuts(m, error);
    if (!status)
        status = find_candidate(m, falling, step, error);
    if (!status && ended && *step == SP_EVALUATE)
        status = check_moved(m, c, error);
    if (ended)
        c->number = 0;
    if (status || *step != SP_EVALUATE)
        return status;
    *next = place_of_next(m);
    if (*next >= 0)
        launch(m, &m->basket[*next]);
    else
        *step = SP_WAIT;
    return KILTER_OK;
}
