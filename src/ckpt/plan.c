/* The parts of a checkpoint, and whether they match those of a program. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/ckpt.h"

/* --- making the plan of a checkpoint --- */

static kl_ckpt_part *add(kl_ckpt_plan *plan, uint64_t rows, uint64_t width, bool words) {
    kl_ckpt_part *part = &plan->parts[plan->count++];
    *part = (kl_ckpt_part){.rows = rows, .width = width, .words = words};
    return part;
}

static void name(kl_ckpt_part *part, const char *folder, unsigned long long number) {
    snprintf(part->name, sizeof part->name, "%s/%llu", folder, number);
}

static void add_arrays(kl_ckpt_plan *plan, const uint64_t *bytes, const uint64_t *rows) {
    for (uint64_t a = 0; a < plan->facts.arrays; a++) {
        uint64_t count = rows ? rows[a] : plan->facts.rows;
        name(add(plan, count, bytes[a], false), "arrays", a);
        name(add(plan, count, 0, true), "sums", a);
    }
}

/* A dataset has at least one byte, because HDF5 gives no position to an empty dataset. */
void kl_ckpt_size_content(kl_ckpt_plan *plan, uint64_t bytes) {
    plan->parts[2 * plan->facts.arrays].rows = bytes > 0 ? bytes : 1;
}

static void add_content(kl_ckpt_plan *plan, uint64_t bytes) {
    kl_ckpt_part *data = add(plan, 0, 0, false);
    kl_ckpt_size_content(plan, bytes);
    kl_ckpt_part *index = add(plan, plan->facts.rows, KL_CKPT_INDEX_WORDS, true);
    snprintf(data->name, sizeof data->name, "content/data");
    snprintf(index->name, sizeof index->name, "content/rows");
}

static void add_values(kl_ckpt_plan *plan, const kl_ckpt_kept *values) {
    for (uint64_t v = 0; v < plan->facts.values; v++) {
        kl_ckpt_part *part = add(plan, values[v].bytes, 0, false);
        snprintf(part->name, sizeof part->name, "values/%s", values[v].name);
    }
    kl_ckpt_part *sums = add(plan, plan->facts.values, 0, true);
    snprintf(sums->name, sizeof sums->name, "sums/values");
}

bool kl_ckpt_plan_make(kl_ckpt_plan *plan, const kl_ckpt_facts *facts, const uint64_t *array_bytes,
                       const uint64_t *array_rows, uint64_t content_bytes, const kl_ckpt_kept *values) {
    size_t most = 2 * (facts->arrays + facts->content) + facts->values + 1;
    *plan = (kl_ckpt_plan){.facts = *facts, .parts = calloc(most, sizeof *plan->parts)};
    if (!plan->parts)
        return false;
    add_arrays(plan, array_bytes, array_rows);
    if (facts->content)
        add_content(plan, content_bytes);
    if (facts->values > 0)
        add_values(plan, values);
    return true;
}

void kl_ckpt_plan_free(kl_ckpt_plan *plan) {
    free(plan->parts);
    *plan = (kl_ckpt_plan){.parts = NULL};
}

uint64_t kl_ckpt_part_bytes(const kl_ckpt_part *part) {
    return part->rows * (part->width > 0 ? part->width : 1) * (part->words ? sizeof(uint64_t) : 1);
}

/* --- comparing --- */

static const char *kind_of(const kl_ckpt_facts *facts) {
    return facts->kind == 0 ? "DOALL" : facts->kind == 1 ? "DOACROSS" : "unknown";
}

kilter_status kl_ckpt_facts_fit(const kl_ckpt_facts *file, const kl_ckpt_facts *program,
                                kilter_error *error) {
    const struct {
        const char *what;
        uint64_t file, program;
    } numbers[] = {
        {"rows", file->rows, program->rows},
        {"elements in a row (inner)", file->inner, program->inner},
        {"arrays", file->arrays, program->arrays},
        {"kept values", file->values, program->values},
    };
    if (file->version != program->version)
        return kl_fail(error, KILTER_ERR_INPUT, "its format has version %llu, but this Kilter reads %llu",
                       kl_ull(file->version), kl_ull(program->version));
    if (strcmp(file->loop, program->loop) != 0)
        return kl_fail(error, KILTER_ERR_INPUT, "it belongs to loop '%.100s', not to '%.100s'", file->loop,
                       program->loop);
    if (file->kind != program->kind)
        return kl_fail(error, KILTER_ERR_INPUT, "its loop has kind %s, but the program's loop has kind %s",
                       kind_of(file), kind_of(program));
    if (file->content != program->content)
        return kl_fail(error, KILTER_ERR_INPUT, "its rows have %s content, but the program's rows have %s",
                       file->content ? "some" : "no", program->content ? "some" : "none");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].file != numbers[i].program)
            return kl_fail(error, KILTER_ERR_INPUT, "it has %llu %s, but the program has %llu",
                           kl_ull(numbers[i].file), numbers[i].what, kl_ull(numbers[i].program));
    return KILTER_OK;
}

/* Return whether part `i` has the same shape in the file and in the program. The part that holds the
 * content of the rows may have another size. */
static bool same_shape(const kl_ckpt_plan *plan, size_t i, const kl_ckpt_part *file,
                       const kl_ckpt_part *program) {
    bool sized = plan->facts.content && i == 2 * plan->facts.arrays;
    return file->width == program->width && file->words == program->words &&
           (sized || file->rows == program->rows);
}

kilter_status kl_ckpt_parts_fit(const kl_ckpt_plan *file, const kl_ckpt_plan *program, kilter_error *error) {
    for (size_t i = 0; i < program->count; i++) {
        const kl_ckpt_part *theirs = &file->parts[i], *ours = &program->parts[i];
        bool by_rows = ours->width == 0 || ours->width == theirs->width;
        const char *unit = ours->width == 0 ? "bytes" : by_rows ? "rows" : "bytes a row";
        if (!same_shape(program, i, theirs, ours))
            return kl_fail(error, KILTER_ERR_INPUT, "'%s' has %llu %s in the file, but %llu in the program",
                           ours->name, kl_ull(by_rows ? theirs->rows : theirs->width), unit,
                           kl_ull(by_rows ? ours->rows : ours->width));
    }
    return KILTER_OK;
}

/* --- names of kept values --- */

bool kl_ckpt_is_name(const char *text) {
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length >= KL_CKPT_NAME_BYTES || !isalpha((unsigned char)text[0]))
        return false;
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
            return false;
    return true;
}
