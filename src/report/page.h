/* Private to the folder report: the parts of a page about a record. */
#ifndef KL_REPORT_PAGE_H
#define KL_REPORT_PAGE_H

#include "report/print.h"
#include "report/reading.h"

enum {
#define KL_PAGE_COLUMN(name) KL_PAGE_##name,
    KL_PAGE_COLUMNS(KL_PAGE_COLUMN)
#undef KL_PAGE_COLUMN
        KL_PAGE_COLUMN_COUNT
};

/* The kinds of time that the workers of the last run did not spend on tasks. The page has the seconds of each
 * kind, summed over the workers. */
typedef enum kl_cost {
    KL_COST_START,   /* time before the worker's first chunk */
    KL_COST_BETWEEN, /* time between two chunks */
    KL_COST_WITHIN,  /* time between the tasks of a chunk */
    KL_COST_END,     /* time after the worker's last chunk */
    KL_COST_UNUSED,  /* all the time of workers that got no chunk */
    KL_COSTS
} kl_cost;

typedef struct kl_costs {
    double s[KL_COSTS];
    double busy_s;
} kl_costs;

/* The chunks of one worker. */
typedef struct kl_page_lane {
    uint32_t worker;
    uint64_t chunks;
} kl_page_lane;

typedef struct kl_page_chunks {
    kl_buffer column[KL_PAGE_COLUMN_COUNT];
    kl_page_lane *lanes;
    size_t lane_count;
    uint64_t count;
    /* tick_s: seconds of a tick; unit: 0 if each task is one unit; end_s: the last time in the record */
    double tick_s, unit, end_s;
    kl_costs costs;
} kl_page_chunks;

/* The first task of a chunk. `at` is the chunk's index in the columns that are sorted by worker. */
typedef struct kl_page_first {
    int64_t began; /* time at which the chunk began, in ticks */
    uint64_t at, run, lo, hi;
} kl_page_first;

/* Write the columns RANK and SKIP from the first tasks of all chunks. This changes the order of `firsts`.
 * Return false if memory runs out. */
bool kl_page_put_firsts(kl_page_first *firsts, size_t count, kl_page_chunks *chunks);
void kl_page_put_varint(kl_buffer *to, uint64_t value);
void kl_page_put_signed(kl_buffer *to, int64_t value);

/* Read the chunks of the record. On failure set r->failed or r->memory. */
void kl_page_chunks_read(kl_reading *r, kl_page_chunks *chunks);
void kl_page_chunks_free(kl_page_chunks *chunks);
/* Print the JSON object that is the first section of the page's data. It contains the sentences page->story.
 */
void kl_page_json(kl_reading *r, const kl_page_chunks *chunks, const kl_page *page, FILE *out);
/* Print a sentence about the outcome, without a newline. Print nothing if there is nothing to say. */
void kl_page_story(const kl_report *report, const kl_costs *costs, int sentence, FILE *out);

#endif
