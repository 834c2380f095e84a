/* Find how many commands fit on a host at once, from the cores, memory and other resources that each
 * command needs. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "sys/sys.h"

static kl_map_resource *find(kl_map_needs *n, const char *name, size_t size) {
    for (uint32_t i = 0; i < n->resources; i++)
        if (strlen(n->resource[i].name) == size && memcmp(n->resource[i].name, name, size) == 0)
            return &n->resource[i];
    if (n->resources == KL_MAP_RESOURCES || size == 0 || size >= sizeof n->resource[0].name)
        return NULL;
    kl_map_resource *r = &n->resource[n->resources++];
    memcpy(r->name, name, size);
    return r;
}

bool kl_map_needs_read(const char *text, bool use, kl_map_needs *n) {
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    char *end;
    if (text[size] != '=' || !isdigit((unsigned char)text[size + 1]))
        return false;
    unsigned long count = strtoul(text + size + 1, &end, 10);
    kl_map_resource *r = *end == '\0' && count <= 1000000 ? find(n, text, size) : NULL;
    if (!r || (use && count == 0))
        return false;
    if (use)
        r->used = (uint32_t)count;
    else
        r->there = (uint32_t)count;
    r->given |= !use;
    return true;
}

/* Count the GPUs that CUDA_VISIBLE_DEVICES names. As for CUDA, the first entry that cannot be a GPU ends the
 * list. */
static uint32_t count_names(const char *names) {
    uint32_t count = 0;
    for (size_t size; (size = strcspn(names, ",")) > 0 && *names != '-'; count++) {
        names += size;
        names += *names == ',';
    }
    return count;
}

/* Return the number of GPUs that this process may use: those of CUDA_VISIBLE_DEVICES, or else all GPUs of
 * the host. */
static uint32_t count_gpus(void) {
    const char *names = getenv("CUDA_VISIBLE_DEVICES");
    uint32_t count = 0;
    glob_t found;
    if (names)
        return count_names(names);
    if (glob("/dev/nvidia[0-9]*", 0, NULL, &found) == 0) {
        count = (uint32_t)found.gl_pathc;
        globfree(&found);
    }
    return count;
}

static kilter_status fit_resource(kl_map_resource *r, uint32_t *slots, kilter_error *error) {
    bool is_gpu = strcmp(r->name, "gpu") == 0;
    const char *names = is_gpu ? getenv("CUDA_VISIBLE_DEVICES") : NULL;
    if (r->used == 0)
        return KILTER_OK;
    if (!r->given && !is_gpu)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--use %s=%u: say with --resource %s=N how many this host has", r->name, r->used,
                       r->name);
    if (is_gpu && (!r->given || (names && count_names(names) < r->there)))
        r->there = count_gpus();
    if (r->there < r->used)
        return kl_fail(error, KILTER_ERR_USAGE, "--use %s=%u: this host has only %u", r->name, r->used,
                       r->there);
    *slots = r->there / r->used < *slots ? r->there / r->used : *slots;
    return KILTER_OK;
}

static kilter_status fit_memory(const kl_map_needs *n, uint32_t *slots, kilter_error *error) {
    uint64_t total = 0, left = kl_memory_left_of("", &total);
    if (n->memory == 0 || left == UINT64_MAX)
        return KILTER_OK;
    if (total < n->memory)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--memory: a command needs %.3g GB, and this host has %.3g GB",
                       (double)n->memory / 1e9, (double)total / 1e9);
    uint64_t fit = left / n->memory > 0 ? left / n->memory : 1;
    *slots = fit < *slots ? (uint32_t)fit : *slots;
    return KILTER_OK;
}

kilter_status kl_map_needs_fit(kl_map_needs *n, const char *jobs, uint32_t *slots, kilter_error *error) {
    uint32_t cores = kl_core_count(), each = n->cores > 0 ? n->cores : 1;
    if (each > cores)
        return kl_fail(error, KILTER_ERR_USAGE, "--cores: a command needs %u cores, and this host has %u",
                       each, cores);
    if (!jobs || (n->cores > 0 && cores / each < *slots))
        *slots = cores / each;
    *slots = *slots < KL_MAP_SLOTS_MOST ? *slots : KL_MAP_SLOTS_MOST;
    kilter_status status = fit_memory(n, slots, error);
    for (uint32_t i = 0; i < n->resources && status == KILTER_OK; i++)
        status = fit_resource(&n->resource[i], slots, error);
    return status;
}

/* --- variables --- */

static void put_text(kl_buffer *out, const char *text, size_t size) {
    kl_put_bytes(out, text, size);
}

/* Append the name of unit `i` of a resource: its entry in CUDA_VISIBLE_DEVICES, or else its number. */
static void put_unit(kl_buffer *out, const char *names, uint32_t i) {
    char number[16];
    for (uint32_t skip = 0; names && *names && skip < i; skip++)
        names += strcspn(names, ",") + (names[strcspn(names, ",")] == ',');
    if (names && *names) {
        put_text(out, names, strcspn(names, ","));
    } else {
        snprintf(number, sizeof number, "%u", i);
        put_text(out, number, strlen(number));
    }
}

static void put_units(const kl_map_resource *r, uint32_t slot, const char *names, kl_buffer *out) {
    for (uint32_t i = 0; i < r->used; i++) {
        if (i > 0)
            kl_put_u8(out, ',');
        put_unit(out, names, slot * r->used + i);
    }
    kl_put_u8(out, 0);
}

static void put_resource(const kl_map_resource *r, uint32_t slot, kl_buffer *out) {
    bool is_gpu = strcmp(r->name, "gpu") == 0;
    if (r->used == 0)
        return;
    put_text(out, "KILTER_", 7);
    for (const char *at = r->name; *at; at++)
        kl_put_u8(out, (uint8_t)toupper((unsigned char)*at));
    kl_put_u8(out, '=');
    put_units(r, slot, NULL, out);
    if (is_gpu) {
        put_text(out, "CUDA_VISIBLE_DEVICES=", 21);
        put_units(r, slot, getenv("CUDA_VISIBLE_DEVICES"), out);
    }
}

void kl_map_needs_variables(const kl_map_needs *n, uint32_t slot, kl_buffer *out) {
    char threads[40];
    if (n->cores > 0 && !getenv("OMP_NUM_THREADS")) {
        snprintf(threads, sizeof threads, "OMP_NUM_THREADS=%u", n->cores);
        put_text(out, threads, strlen(threads) + 1);
    }
    for (uint32_t i = 0; i < n->resources; i++)
        put_resource(&n->resource[i], slot, out);
}
