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

/* Kinds of time in which the workers of the last run had no task: seconds, added over all workers. */
typedef enum kl_cost {
    KL_COST_START,   /* time before a worker's first chunk */
    KL_COST_BETWEEN, /* time between two chunks of a worker */
    KL_COST_WITHIN,  /* time between the tasks of a chunk */
    KL_COST_END,     /* time after a worker's last chunk */
    KL_COST_UNUSED,  /* all the time of workers that got no chunk */
    KL_COSTS
} kl_cost;

typedef struct kl_costs {
    double s[KL_COSTS];
    double busy_s;
} kl_costs;

/* A worker, and the number of its chunks. */
typedef struct kl_page_lane {
    uint32_t worker;
    uint64_t chunks;
} kl_page_lane;

typedef struct kl_page_chunks {
    kl_buffer column[KL_PAGE_COLUMN_COUNT];
    kl_page_lane *lanes;
    size_t lane_count;
    uint64_t count;
    double tick_s, unit, end_s; /* tick_s: seconds of a tick; unit: step of units, 0: each task is one unit;
                                   end_s: last time in the record */
    kl_costs costs;
} kl_page_chunks;

/* Read the chunks of a record. After a failure, r->failed or r->memory is set. */
void kl_page_chunks_read(kl_reading *r, kl_page_chunks *chunks);
void kl_page_chunks_free(kl_page_chunks *chunks);
/* Print the first section of the page, a JSON object, with the sentences of `page`. */
void kl_page_json(kl_reading *r, const kl_page_chunks *chunks, const kl_page *page, FILE *out);
/* Print one of the sentences about the outcome, without a newline. Print nothing if there is nothing to say.
 */
void kl_page_story(const kl_report *report, const kl_costs *costs, int sentence, FILE *out);

#endif
