/* Add actions to the present step of a peer. Most of them send messages to other peers. */
#include "peer/peer_private.h"

void kl_peer_check(kl_node *node, bool ok) {
    node->out->failed |= !ok;
}

void kl_act(kl_node *node, kl_node_action action) {
    kl_node_actions *out = node->out;
    kl_node_action *items = kl_array_grow(out->items, &out->room, out->count + 1, sizeof *items);
    kl_peer_check(node, items);
    if (items) {
        out->items = items;
        items[out->count++] = action;
    }
}

void kl_act_on(kl_node *node, kl_node_action_kind kind, kilter_bytes bytes) {
    kl_buffer *out = &node->out->bytes;
    kl_node_action action = {.kind = kind, .at = out->size, .size = bytes.size};
    if (bytes.size > 0)
        kl_put_bytes(out, bytes.data, bytes.size);
    kl_peer_check(node, !out->failed);
    kl_act(node, action);
}

void kl_post(kl_node *node, uint32_t to, kl_note *note, uint64_t tasks) {
    kl_buffer *bytes = &node->out->bytes;
    kl_node_action action = {.kind = KL_NODE_SEND, .peer = to, .task = tasks, .at = bytes->size};
    note->census = node->round.census;
    kl_note_put(bytes, note);
    kl_peer_check(node, !bytes->failed);
    action.size = bytes->size - action.at;
    kl_act(node, action);
}

void kl_act_signal(kl_node *node, kl_node_action_kind kind, uint64_t number) {
    kl_act(node, (kl_node_action){.kind = kind,
                                  .task = number,
                                  .left = kl_work_left(&node->work),
                                  .rate = kl_work_rate(&node->work, node->now_s)});
}

void kl_post_offer(kl_node *node, uint32_t to) {
    size_t before = node->out->count;
    kl_post_plain(node, to, KL_NOTE_ASK, 0);
    if (node->out->count == before)
        return;
    kl_node_action *offer = &node->out->items[before];
    offer->kind = KL_NODE_OFFERS;
    offer->rate = kl_work_rate(&node->work, node->now_s);
}

void kl_post_plain(kl_node *node, uint32_t to, kl_note_kind kind, uint64_t number) {
    kl_note note = {.kind = kind, .number = number, .rate = kl_work_rate(&node->work, node->now_s)};
    kl_post(node, to, &note, 0);
}
