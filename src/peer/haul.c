/* A haul is a set of done tasks, with the value that combines their results. */
#include "peer/peer_private.h"

static bool combine(const kl_combine *how, kl_buffer *into, kilter_bytes value) {
    if (value.size == 0)
        return true;
    if (how->add)
        return how->add(how->self, into, value.data, value.size);
    kl_put_bytes(into, value.data, value.size);
    return !into->failed;
}

void kl_haul_add(kl_node *n, kl_haul *haul, const kl_ranges *tasks, kilter_bytes value) {
    kl_peer_check(n, kl_ranges_add_all(&haul->tasks, tasks->at, tasks->count) &&
                         combine(&n->of.combine, &haul->value, value));
}

kilter_bytes kl_haul_value(const kl_haul *haul) {
    return (kilter_bytes){haul->value.data, haul->value.size};
}

void kl_haul_join(kl_node *n, kl_haul *haul, const kl_haul *more) {
    kl_haul_add(n, haul, &more->tasks, kl_haul_value(more));
}

void kl_haul_move(kl_node *n, kl_haul *haul, kl_haul *from) {
    kl_haul_join(n, haul, from);
    kl_haul_clear(from);
}

void kl_haul_clear(kl_haul *haul) {
    haul->tasks.count = 0;
    kl_buffer_clear(&haul->value);
}

void kl_haul_free(kl_haul *haul) {
    kl_ranges_free(&haul->tasks);
    kl_buffer_free(&haul->value);
}
