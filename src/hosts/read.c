/* Read a list of hosts from a file, or from the environment of a Slurm job. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/hosts.h"
#include "sys/sys.h"

enum { FILE_MOST = 16 << 20 };

static kilter_status read_all(FILE *in, const char *file, kl_buffer *text, kilter_error *error) {
    char piece[4096];
    for (size_t got; (got = fread(piece, 1, sizeof piece, in)) > 0 && text->size <= FILE_MOST;)
        kl_put_bytes(text, piece, got);
    if (ferror(in))
        return kl_fail(error, KILTER_ERR_INPUT, "%s: %s", file, strerror(errno));
    if (text->size > FILE_MOST)
        return kl_fail(error, KILTER_ERR_INPUT, "%s: a list of hosts has at most 16 MiB", file);
    return text->failed ? kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", file) : KILTER_OK;
}

static kilter_status read_file(const char *file, kl_host_list *list, kilter_error *error) {
    kl_buffer text = {0};
    FILE *in = fopen(file, "re");
    if (!in)
        return kl_fail(error, KILTER_ERR_INPUT, "%s: %s; name a file with hosts", file, strerror(errno));
    kilter_status status = read_all(in, file, &text, error);
    fclose(in);
    if (status == KILTER_OK)
        status = kl_host_list_parse(file, (const char *)text.data, text.size, list, error);
    kl_buffer_free(&text);
    return status;
}

kilter_status kl_hosts_list(const char *file, kl_host_list *list, bool *slurm, kilter_error *error) {
    const char *nodes = getenv("SLURM_JOB_NODELIST");
    char name[KL_HOST_BYTES];
    bool allocated = !file && nodes && *nodes;
    if (slurm)
        *slurm = allocated;
    if (file)
        return read_file(file, list, error);
    if (allocated)
        return kl_host_list_slurm(nodes, getenv("SLURM_JOB_CPUS_PER_NODE"), list, error);
    kl_host_list here = {0};
    kl_host_name(name);
    kilter_status status = kl_host_list_add(&here, name, 0, error);
    if (status == KILTER_OK)
        *list = here;
    else
        kl_host_list_free(&here);
    return status;
}
