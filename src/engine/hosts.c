/* The hosts of the workers. For each host, this file counts the workers and the lost workers, and notes
 * whether a user has released its workers. */
#include <stdio.h>
#include <string.h>

#include "engine/master_private.h"

static bool is_there(const member *one) {
    return one->host && one->has_place && one->stage > GREETING && one->stage < GONE;
}

static bool got_tasks(const kl_master *m, const member *one) {
    return m->balance.views[one->worker].chunks > 0;
}

/* Return the entry of this host, and make one if there is none. NULL: memory ran out. */
static kl_trouble *trouble_of(kl_master *m, const char *host) {
    kl_registry *r = &m->members;
    for (uint64_t i = 0; i < r->trouble_count; i++)
        if (strcmp(r->troubles[i].name, host) == 0)
            return &r->troubles[i];
    kl_trouble *list = kl_array_grow(r->troubles, &r->trouble_room, r->trouble_count + 1, sizeof *list);
    if (!list)
        return NULL;
    r->troubles = list;
    list[r->trouble_count] = (kl_trouble){.lost = 0};
    snprintf(list[r->trouble_count].name, sizeof list->name, "%s", host);
    return &list[r->trouble_count++];
}

/* Count a lost worker of this host. Only losses in a row count: if any worker of the host has got tasks in
 * this run, the count begins again at 1. */
void kl_master_note_lost_on(kl_master *m, const member *lost) {
    kl_trouble *t = lost->host ? trouble_of(m, lost->host) : NULL;
    bool works = lost->host && lost->has_place && got_tasks(m, lost);
    for (size_t i = 0; t && !works && i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        works = is_there(one) && strcmp(one->host, lost->host) == 0 && got_tasks(m, one);
    }
    if (t)
        t->lost = works ? 1 : t->lost + 1;
}

void kl_master_note_drained(kl_master *m, const char *host) {
    kl_trouble *t = trouble_of(m, host);
    if (t)
        t->drained = true;
}

/* Return the entry of this host in the state; NULL: there is no room. Try the last entry first, because
 * workers of a host mostly join together. */
static kl_host_state *entry_of(kl_growing_state *state, const char *host, kl_host_state *last) {
    if (last && strcmp(last->name, host) == 0)
        return last;
    for (uint32_t i = 0; i < state->hosts; i++)
        if (strcmp(state->host[i].name, host) == 0)
            return &state->host[i];
    if (state->hosts == KL_CONTROL_HOSTS_MOST)
        return NULL;
    kl_host_state *made = &state->host[state->hosts++];
    *made = (kl_host_state){.workers = 0};
    snprintf(made->name, sizeof made->name, "%s", host);
    return made;
}

void kl_master_list_hosts(const kl_master *m, kl_growing_state *state) {
    kl_host_state *h = NULL;
    state->hosts = 0;
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        h = is_there(one) ? entry_of(state, one->host, h) : h;
        if (!h || !is_there(one))
            continue;
        h->workers++;
        h->idle += one->stage == WORKING && m->balance.views[one->worker].queued_tasks == 0;
        h->working += got_tasks(m, one);
    }
    for (uint64_t i = 0; i < m->members.trouble_count; i++) {
        const kl_trouble *t = &m->members.troubles[i];
        if (!(h = entry_of(state, t->name, h)))
            continue;
        h->lost = t->lost;
        h->drained = t->drained;
    }
}
