/* Fuzz target: read any text as the stored state of a keeper, as the end of an attempt, and as output of
 * Slurm's commands. If a keeper accepts a state, a second keeper must accept the state that the first one
 * stores. The first keeper must then handle further events without a crash. */
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void live(kl_keeper *k) {
    const kl_keeper_view views[] = {{.name = "a", .slots = 2, .qos = 1, .why = ""},
                                    {.name = "b", .slots = 2, .qos = 0.5, .why = ""}};
    kl_keeper_action action;
    for (int i = 0; i < 20; i++) {
        kl_keeper_event event = {
            .kind = i % 3 ? KL_KEEPER_TIME : KL_KEEPER_HOSTS, .views = views, .count = 2};
        kl_keeper_step(k, &event, 10 + i);
        while (kl_keeper_take(k, &action))
            if (action.act == KL_KEEPER_START)
                kl_keeper_step(
                    k,
                    &(kl_keeper_event){.kind = KL_KEEPER_ENDED, .end = {action.attempt, KL_KEEPER_EXITED, 1}},
                    10 + i);
    }
}

static void restore(const char *text, size_t size) {
    const kl_keeper_options options = {
        .ranks = 3, .least = 1, .tries = 3, .hang_s = 10, .wait_s = 60, .look_s = 5};
    kl_keeper k, again;
    kl_buffer first = {0}, second = {0};
    kl_keeper_init(&k, &options);
    kl_keeper_init(&again, &options);
    if (kl_keeper_restore(&k, text, size, size % 2, 1, NULL) == KILTER_OK) {
        kl_keeper_store(&k, &first);
        if (kl_keeper_restore(&again, (const char *)first.data, first.size, true, 1, NULL) != KILTER_OK)
            __builtin_trap();
        kl_keeper_store(&again, &second);
        live(&k);
    }
    kl_buffer_free(&first);
    kl_buffer_free(&second);
    kl_keeper_free(&k);
    kl_keeper_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    kl_keeper_end end;
    kl_slurm_job job;
    kl_slurm_node node;
    uint32_t least, most;
    restore(text, size);
    kl_get_end(text, size, &end);
    kl_slurm_job_read(text, &job);
    kl_slurm_nodes_wanted(text, &least, &most);
    kl_buffer names = {0};
    char name[KL_SLURM_NAME_BYTES], number[KL_SLURM_JOB_BYTES];
    kl_slurm_expand(text, &names);
    kl_buffer_free(&names);
    kl_slurm_refused(text);
    kl_slurm_name(text, text, size, name);
    kl_slurm_number(text, number);
    kl_slurm_has_features(text, text);
    kl_slurm_time_s(text);
    for (const char *at = text; kl_slurm_node_read(&at, &node);)
        if (node.load < 0)
            __builtin_trap();
    kl_launcher_of_program(text, size);
    kl_launcher_of_version(text);
    free(text);
    return 0;
}
