/* The list of the farm's members. A member is found by its connection (peer), or by its index in the load
 * balance (place). */
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

/* Return the index of the member with this peer, or the index at which to insert it. Try the most likely
 * index first, because peers are mostly consecutive numbers. */
static size_t place_of(const kl_master *m, kl_peer peer) {
    size_t low = 0, high = m->members.count;
    size_t likely = high > 0 ? peer - m->members.list[0].peer : 0;
    if (likely < high && m->members.list[likely].peer == peer)
        return likely;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->members.list[middle].peer < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

member *kl_master_find(kl_master *m, kl_peer peer) {
    size_t at = place_of(m, peer);
    member *found = at < m->members.count ? &m->members.list[at] : NULL;
    return found && found->peer == peer && found->stage != GONE ? found : NULL;
}

member *kl_master_member(const kl_master *m, uint32_t worker) {
    return worker < m->members.peer_count ? kl_master_find((kl_master *)m, m->members.peers[worker]) : NULL;
}

void kl_member_free(member *one) {
    free(one->chunks);
    free(one->host);
    free(one->reach.address);
    free(one->reach.why_not);
}

/* Remove members that have left, because the list would otherwise grow while workers come and go for weeks.
 */
static void forget_gone(kl_master *m) {
    size_t stay = 0;
    if (m->members.gone == 0)
        return;
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        if (one->stage != GONE) {
            m->members.list[stay++] = *one;
            continue;
        }
        if (one->has_place)
            kl_balance_remove_worker(&m->balance, one->worker);
        kl_member_free(one);
    }
    m->members.count = stay;
    m->members.gone = 0;
}

kilter_status kl_master_add(kl_master *m, kl_peer peer, kilter_error *error) {
    forget_gone(m);
    member *members = kl_array_grow(m->members.list, &m->members.room, m->members.count + 1, sizeof *members);
    if (!members)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking in a worker: memory ran out");
    m->members.list = members;
    member *place = &m->members.list[place_of(m, peer)];
    memmove(place + 1, place, (size_t)(m->members.list + m->members.count - place) * sizeof *place);
    *place = (member){.peer = peer, .joined_s = kl_now_s(&m->options.clock)};
    m->members.count++;
    if (m->members.greeting++ == 0)
        m->members.silent_s = place->joined_s + m->options.greeting_s;
    return KILTER_OK;
}

kilter_status kl_master_note_peer(kl_master *m, uint32_t worker, kl_peer peer, kilter_error *error) {
    if (worker >= m->members.peer_count) {
        uint32_t count = 2 * worker + 16;
        kl_peer *peers = realloc(m->members.peers, count * sizeof *peers);
        if (!peers)
            return kl_fail(error, KILTER_ERR_MEMORY, "taking in worker %u: memory ran out", worker);
        for (uint32_t i = m->members.peer_count; i < count; i++)
            peers[i] = KL_NO_PEER;
        m->members.peers = peers;
        m->members.peer_count = count;
    }
    m->members.peers[worker] = peer;
    return KILTER_OK;
}

static bool is_process(const member *one, uint64_t pid) {
    return one->stage < GONE && one->pid == pid;
}

uint32_t kl_master_ready(const kl_master *m) {
    return m->members.ready;
}
uint32_t kl_master_active(const kl_master *m) {
    return m->members.ready - m->members.resting;
}
uint32_t kl_master_refused(const kl_master *m) {
    return m->members.refused;
}
const char *kl_master_last_loss(const kl_master *m) {
    return m->members.last_loss;
}
bool kl_master_knows(const kl_master *m, uint64_t pid) {
    for (size_t i = 0; i < m->members.count; i++)
        if (m->members.list[i].stage > STARTING && is_process(&m->members.list[i], pid))
            return true;
    return false;
}
bool kl_master_sees(const kl_master *m, uint64_t pid) {
    for (size_t i = 0; i < m->members.count; i++)
        if (m->members.list[i].stage > GREETING && is_process(&m->members.list[i], pid))
            return true;
    return false;
}
void kl_master_expect(kl_master *m, uint32_t coming) {
    m->members.coming = coming;
}
uint64_t kl_master_finished(const kl_master *m) {
    return m->run.finished;
}
bool kl_master_running(const kl_master *m) {
    return m->run.running;
}
