/* Settings of a farm's zmq sockets, and the key that encrypts connections to other machines. */
#include <stdlib.h>
#include <string.h>

#include "farm/farm_private.h"

static void print_complaint(void *name, const char *sentence) {
    fprintf(stderr, "%s: %s\n", (const char *)name, sentence);
}

static kilter_status read_key(const kl_settings *s, bool is_master, kl_key *key, kilter_error *error) {
    kilter_status (*read)(const char *, kl_key *, kilter_error *) =
        is_master ? kl_key_read_or_make : kl_key_read;
    char *path;
    if (s->key)
        return read(s->key, key, error);
    kilter_status status = kl_key_default_path(&path, error);
    if (status != KILTER_OK)
        return status;
    status = read(path, key, error);
    free(path);
    return status;
}

kilter_status kl_farm_zmq_options(const kl_settings *s, const char *endpoint, bool is_master, kl_key *key,
                                  kl_zmq_options *options, kilter_error *error) {
    bool is_tcp = strncmp(endpoint, "tcp:", 4) == 0;
    kilter_status status = is_tcp ? read_key(s, is_master, key, error) : KILTER_OK;
    if (status == KILTER_OK)
        *options = (kl_zmq_options){.lost_after_s = s->options.lost_after_s,
                                    .key = is_tcp ? key : NULL,
                                    .complain = print_complaint,
                                    .complain_to = s->name,
                                    .arenas = is_tcp ? NULL : s->arenas};
    return status;
}
