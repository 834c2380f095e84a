/* Store the inputs of each decision on the number of workers, and make the decision again from its inputs.
 * Each row of the record can be read without other rows. */
#include "decide/grounds.h"

#define REAL(type, member)                                                                                   \
    { KL_MEMBER_SUM, offsetof(type, member) }
#define COUNT(type, member)                                                                                  \
    { KL_MEMBER_U64, offsetof(type, member) }
#define SMALL(type, member)                                                                                  \
    { KL_MEMBER_U32, offsetof(type, member) }
#define FLAG(type, member)                                                                                   \
    { KL_MEMBER_FLAG, offsetof(type, member) }
#define LIST_OF(array)                                                                                       \
    { array, sizeof(array) / sizeof *(array) }

static const kl_member of_load[] = {
    REAL(kl_load, use.farm_s),   REAL(kl_load, use.callbacks_s),
    REAL(kl_load, use.local_s),  REAL(kl_load, use.local_tasks),
    REAL(kl_load, use.delay_s),  REAL(kl_load, use.tasks),
    REAL(kl_load, use.messages), REAL(kl_load, use.bytes),
    SMALL(kl_load, use.cores),   REAL(kl_load, task_s),
    REAL(kl_load, beyond),       SMALL(kl_load, workers),
    REAL(kl_load, chunks),       REAL(kl_load, answer_s),
    REAL(kl_load, to_workers),   REAL(kl_load, per_byte_s),
    FLAG(kl_load, apart),        FLAG(kl_load, own_links),
    REAL(kl_load, copy_s),       REAL(kl_load, near_s),
    REAL(kl_load, woken_s),      REAL(kl_load, awake_s),
    FLAG(kl_load, even),         REAL(kl_load, wait_s),
};

static const kl_member of_iteration[] = {
    COUNT(kl_iteration, run),
    COUNT(kl_iteration, tasks),
    COUNT(kl_iteration, chunks),
    REAL(kl_iteration, model.message.fixed_s),
    REAL(kl_iteration, model.message.per_unit_s),
    REAL(kl_iteration, model.work_s),
    REAL(kl_iteration, model.bytes),
    REAL(kl_iteration, model.to_workers),
    REAL(kl_iteration, model.master_s),
    FLAG(kl_iteration, model.synchronous),
    REAL(kl_iteration, task_mean_s),
    REAL(kl_iteration, task_sd_s),
    REAL(kl_iteration, answer_s),
    REAL(kl_iteration, way_s),
    SMALL(kl_iteration, workers),
    REAL(kl_iteration, elapsed_s),
    REAL(kl_iteration, uneven_s),
    REAL(kl_iteration, quality),
    SMALL(kl_iteration, most),
    FLAG(kl_iteration, model.own_links),
};

static const kl_member of_team[] = {
    SMALL(kl_team, workers),
    SMALL(kl_team, way),
    SMALL(kl_team, seen),
    SMALL(kl_team, nearest),
    SMALL(kl_team, measured),
    REAL(kl_team, costs[0].by_task),
    REAL(kl_team, costs[0].by_work),
    REAL(kl_team, costs[1].by_task),
    REAL(kl_team, costs[1].by_work),
    REAL(kl_team, costs[2].by_task),
    REAL(kl_team, costs[2].by_work),
    SMALL(kl_team, tried_from),
    REAL(kl_team, before.by_task),
    REAL(kl_team, before.by_work),
    FLAG(kl_team, explores),
    COUNT(kl_team, others_until),
};

static const kl_member of_point[] = {
    SMALL(kl_team_point, workers),
    REAL(kl_team_point, cost.by_task),
    REAL(kl_team_point, cost.by_work),
    COUNT(kl_team_point, until),
};

static const kl_member of_glance[] = {
    REAL(kl_glance, began_s), REAL(kl_glance, then_s), REAL(kl_glance, then_cpu_s),
    SMALL(kl_glance, found),  SMALL(kl_glance, from),  FLAG(kl_glance, gave_up),
};

static const kl_member of_sight[] = {
    REAL(kl_sight, now_s),    REAL(kl_sight, cpu_s), SMALL(kl_sight, cores),
    SMALL(kl_sight, workers), COUNT(kl_sight, done),
};

static const kl_members members_of_load = LIST_OF(of_load), members_of_iteration = LIST_OF(of_iteration),
                        members_of_team = LIST_OF(of_team), members_of_point = LIST_OF(of_point),
                        members_of_glance = LIST_OF(of_glance), members_of_sight = LIST_OF(of_sight);

/* --- record how the number of workers was chosen --- */

static void begin(kl_buffer *out, kl_ground ground) {
    kl_put_u8(out, KL_GROUNDS_ALONE);
    kl_put_u8(out, (uint8_t)ground);
}

static void put_load(kl_buffer *out, const kl_load *load) {
    const kl_load none = {0};
    kl_grounds_put_changes(out, &members_of_load, &none, load);
}

/* Write the measurements of an iteration, but not the workers' speeds. hear_speed() writes each speed when
 * the decision uses it. */
static void put_iteration(kl_buffer *out, const kl_iteration *it) {
    const kl_iteration none = {0};
    kl_grounds_put_changes(out, &members_of_iteration, &none, it);
    put_load(out, &it->load);
}

typedef struct listener {
    kl_speeds speeds;
    kl_buffer *out;
} listener;

static double hear_speed(const void *self, uint32_t n) {
    const listener *l = self;
    double speed = kl_speed_of(l->speeds, n);
    kl_grounds_put_count(l->out, n);
    kl_put_f64(l->out, speed);
    return speed;
}

void kl_grounds_team(kl_buffer *out, const kl_team *team, const kl_iteration *it, kl_team_plan *plan) {
    const kl_team none = {0};
    const listener l = {it->speeds, out};
    kl_iteration heard = *it;
    heard.speeds = (kl_speeds){hear_speed, &l};
    begin(out, KL_GROUND_TEAM);
    kl_grounds_put_changes(out, &members_of_team, &none, team);
    for (int i = 0; i < KL_TEAM_POINTS; i++)
        kl_grounds_put_changes(out, &members_of_point, &none.points[i], &team->points[i]);
    put_iteration(out, it);
    kl_team_choose(team, &heard, plan);
}

uint32_t kl_grounds_expect(kl_buffer *out, const kl_iteration *it, char reason[KL_REASON_BYTES]) {
    const listener l = {it->speeds, out};
    kl_iteration heard = *it;
    heard.speeds = (kl_speeds){hear_speed, &l};
    begin(out, KL_GROUND_EXPECTS);
    put_iteration(out, it);
    return kl_team_expect(&heard, reason);
}

bool kl_grounds_look(kl_buffer *out, kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan) {
    const kl_glance none = {0};
    const kl_sight nothing = {0};
    begin(out, KL_GROUND_LOOKS);
    kl_grounds_put_changes(out, &members_of_glance, &none, glance);
    kl_grounds_put_changes(out, &members_of_sight, &nothing, sight);
    put_load(out, sight->load);
    return kl_glance_look(glance, sight, plan);
}

/* --- choose the number of workers again from a record --- */

typedef struct memory {
    kl_reader speeds;
    bool lacks; /* true: a speed that is needed was not recorded */
} memory;

static double recall_speed(const void *self, uint32_t n) {
    memory *m = (memory *)self;
    kl_reader r = m->speeds;
    while (r.at < r.size && !r.bad) {
        uint64_t of = kl_grounds_get_count(&r);
        double speed = kl_get_f64(&r);
        if (of == n && !r.bad)
            return speed;
    }
    m->lacks = true;
    return n;
}

/* Read the measurements of an iteration. All bytes that follow are workers' speeds, which recall_speed()
 * reads. */
static kl_iteration get_iteration(kl_reader *r, memory *m) {
    kl_iteration it = {0};
    kl_grounds_get_changes(r, &members_of_iteration, &it);
    kl_grounds_get_changes(r, &members_of_load, &it.load);
    *m = (memory){kl_reader_of(r->data + r->at, r->size - r->at), false};
    it.speeds = (kl_speeds){recall_speed, m};
    return it;
}

static bool team_again(kl_reader *r, kl_decision *d) {
    kl_team team = {0};
    kl_team_plan plan;
    memory m;
    kl_grounds_get_changes(r, &members_of_team, &team);
    for (int i = 0; i < KL_TEAM_POINTS; i++)
        kl_grounds_get_changes(r, &members_of_point, &team.points[i]);
    r->bad |= team.way >= KL_TEAM_WAYS;
    const kl_iteration it = get_iteration(r, &m);
    if (r->bad)
        return false;
    kl_team_choose(&team, &it, &plan);
    *d = plan.decision;
    d->forecast_s = plan.forecast_s;
    if (plan.verdict == KL_TEAM_NOTHING)
        d->forecast_s = d->gain_s = 0;
    return !m.lacks;
}

static bool expect_again(kl_reader *r, kl_decision *d) {
    memory m;
    const kl_iteration it = get_iteration(r, &m);
    if (r->bad)
        return false;
    *d = (kl_decision){.kind = KL_DECIDES_TEAM, .subject = KL_SUBJECT_ALL};
    d->count = kl_team_expect(&it, d->reason);
    return !m.lacks;
}

static bool look_again(kl_reader *r, kl_decision *d) {
    kl_glance glance = {0};
    kl_sight sight = {0};
    kl_load load = {0};
    kl_glance_plan plan;
    kl_grounds_get_changes(r, &members_of_glance, &glance);
    kl_grounds_get_changes(r, &members_of_sight, &sight);
    kl_grounds_get_changes(r, &members_of_load, &load);
    sight.load = &load;
    bool looked = !r->bad && kl_glance_look(&glance, &sight, &plan);
    if (looked)
        *d = plan.decision;
    return looked;
}

bool kl_staff_again(kl_reader *r, kl_decision *decision) {
    switch ((kl_ground)kl_get_u8(r)) {
    case KL_GROUND_TEAM:
        return team_again(r, decision);
    case KL_GROUND_EXPECTS:
        return expect_again(r, decision);
    case KL_GROUND_LOOKS:
        return look_again(r, decision);
    default:
        return false;
    }
}
