/* Read the data for a page about a record. */
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "report/report.h"

static char *sentence_of(kl_reading *r, const kl_costs *costs, int sentence) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out)
        kl_page_story(r->report, costs, sentence, out);
    bool whole = out && fclose(out) == 0;
    r->memory |= !whole;
    if (whole && size > 0)
        return text;
    free(text);
    return NULL;
}

/* Return the JSON object of the page as text. */
static kl_buffer json_of(kl_reading *r, const kl_page_chunks *chunks, const kl_page *page) {
    char *text = NULL;
    size_t size = 0;
    kl_buffer json = {0};
    FILE *out = open_memstream(&text, &size);
    if (out)
        kl_page_json(r, chunks, page, out);
    r->memory |= !out || fclose(out) != 0;
    json.data = (uint8_t *)text;
    json.size = size;
    return json;
}

static void put_sections(kl_reading *r, const kl_page_chunks *chunks, kl_page *page) {
    kl_buffer data = {0}, json = json_of(r, chunks, page);
    kl_put_span(&data, json.data, json.size);
    for (int i = 0; i < KL_PAGE_COLUMN_COUNT; i++)
        kl_put_span(&data, chunks->column[i].data, chunks->column[i].size);
    free(json.data);
    r->memory |= data.failed;
    page->data = (char *)data.data;
    page->size = data.size;
}

static void fill(kl_reading *r, kl_page *page) {
    kl_page_chunks chunks = {0};
    kl_page_chunks_read(r, &chunks);
    page->title = strdup(r->report->run.program);
    r->memory |= !page->title;
    for (int i = 0; i < KL_PAGE_SENTENCES; i++)
        page->story[i] = sentence_of(r, &chunks.costs, i);
    put_sections(r, &chunks, page);
    kl_page_chunks_free(&chunks);
}

kilter_status kl_page_read(const char *path, kl_page *page, kilter_error *error) {
    kl_reading r = {0};
    *page = (kl_page){0};
    kilter_status status = kl_reading_report(&r, path, false, error);
    if (status == KILTER_OK)
        fill(&r, page);
    if (status == KILTER_OK && (r.failed || r.memory))
        status = kl_reading_failed(&r, path, error);
    sqlite3_close(r.db);
    kl_report_free(r.report);
    if (status != KILTER_OK)
        kl_page_free(page);
    return status;
}

void kl_page_free(kl_page *page) {
    free(page->title);
    for (int i = 0; i < KL_PAGE_SENTENCES; i++)
        free(page->story[i]);
    free(page->data);
    *page = (kl_page){0};
}
