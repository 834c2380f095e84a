/* Fill in the template of the page about a run. Texts of the record are escaped and its data are in
 * base64, so nothing of the record is copied unchanged. */
#include "page.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "kilter/version.h"
#include "predict.h"
#include "report/print.h"
#include "report/report.h"

typedef struct filling {
    const kl_page *page; /* the record that the page shows; NULL: the page fetches its data */
    const char *title;
    const kl_buffer *deflated;
} filling;

/* ---- data ---- */

/* Return the prediction for the run as JSON, malloc'd. NULL: the record does not allow a prediction, for
 * example because it is the record of a loop. */
static char *predicted(const char *record, size_t *size) {
    kl_basis basis = {0};
    kl_prediction prediction;
    kilter_error error;
    char *text = NULL;
    kilter_status status = kl_basis_read(&basis, record, -1, &error);
    if (status == KILTER_OK)
        status = kl_basis_complete(&basis, &error);
    if (status == KILTER_OK)
        status = kl_predict(&basis, 0, &prediction, &error);
    if (status == KILTER_OK) {
        FILE *out = open_memstream(&text, size);
        if (out)
            kl_prediction_print_json(&prediction, out);
        if (!out || fclose(out) != 0) {
            free(text);
            text = NULL;
        }
        kl_prediction_free(&prediction);
    }
    kl_basis_free(&basis);
    return text;
}

/* Deflate the bytes of a section into a block of their own. last: this section ends the data. */
static void deflate_section(z_stream *z, const kl_buffer *section, bool last, kl_buffer *deflated) {
    uint8_t block[1 << 14];
    z->next_in = section->data;
    z->avail_in = (uInt)section->size;
    do {
        z->next_out = block;
        z->avail_out = sizeof block;
        deflate(z, last ? Z_FINISH : Z_BLOCK);
        kl_put_bytes(deflated, block, sizeof block - z->avail_out);
    } while (z->avail_out == 0);
}

/* Deflate the sections. The sections differ in their most frequent bytes, so each section gets a block with
 * its own code. The bytes of a column are nearly random, so only short sequences occur in it again. A
 * reference to a short sequence can take more bits than the sequence. With Z_FILTERED, zlib makes fewer such
 * references. */
static void deflate_all(const kl_buffer *data, kl_buffer *deflated) {
    z_stream z = {0};
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL, Z_FILTERED) != Z_OK) {
        deflated->failed = true;
        return;
    }
    for (size_t at = 0; at < data->size;) {
        kl_reader reader = kl_reader_of(data->data + at, data->size - at);
        kl_buffer section = {.data = data->data + at, .size = 4 + (size_t)kl_get_u32(&reader)};
        at += section.size;
        deflate_section(&z, &section, at == data->size, deflated);
    }
    deflateEnd(&z);
}

static kilter_status pack(const char *record, const kl_page *page, kl_buffer *deflated, kilter_error *error) {
    kl_buffer data = {0};
    size_t size = 0;
    char *prediction = predicted(record, &size);
    kl_put_bytes(&data, page->data, page->size);
    kl_put_span(&data, prediction, prediction ? size : 0);
    free(prediction);
    if (!data.failed && data.size < UINT32_MAX)
        deflate_all(&data, deflated);
    bool failed = data.failed || deflated->failed;
    bool large = data.size >= UINT32_MAX;
    kl_buffer_free(&data);
    if (large)
        return kl_fail(error, KILTER_ERR_INPUT, "making a page of '%s': it has more than 4 GiB", record);
    return failed ? kl_fail(error, KILTER_ERR_MEMORY, "making a page of '%s': memory ran out", record)
                  : KILTER_OK;
}

kilter_status kl_page_data(const char *record, kl_buffer *deflated, kilter_error *error) {
    kl_page page;
    kilter_status status = kl_page_read(record, &page, error);
    if (status != KILTER_OK)
        return status;
    status = pack(record, &page, deflated, error);
    kl_page_free(&page);
    return status;
}

/* ---- filling in the template ---- */

static void put_escaped(FILE *out, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

static void put_base64(FILE *out, const kl_buffer *bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes->size; i += 3) {
        size_t have = bytes->size - i;
        uint32_t three = (uint32_t)bytes->data[i] << 16;
        three |= have > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0;
        three |= have > 2 ? bytes->data[i + 2] : 0;
        fputc(digits[three >> 18], out);
        fputc(digits[three >> 12 & 63], out);
        fputc(have > 1 ? digits[three >> 6 & 63] : '=', out);
        fputc(have > 2 ? digits[three & 63] : '=', out);
    }
}

static void put_title(const filling *f, FILE *out) {
    put_escaped(out, kl_shown_name(f->title).text);
}

static void put_story(const filling *f, FILE *out) {
    for (int i = 0; f->page && i < KL_PAGE_SENTENCES && f->page->story[i]; i++) {
        fputs("<p>", out);
        put_escaped(out, f->page->story[i]);
        fputs("</p>", out);
    }
}

static void put_live(const filling *f, FILE *out) {
    fputs(f->page ? "" : " data-live=\"1\"", out);
}

static void put_data(const filling *f, FILE *out) {
    if (f->deflated)
        put_base64(out, f->deflated);
}

static void put_plot(const filling *f, FILE *out) {
    (void)f;
    if (kl_page_has_plots())
        fprintf(out, "/*\n%s*/\n%s", (const char *)kl_plot_licence, (const char *)kl_plot_js);
}

static void put_plot_word(const filling *f, FILE *out) {
    (void)f;
    fputs(kl_page_has_plots()
              ? "Line plots are drawn by uPlot (MIT licence)."
              : "This Kilter was built without uPlot, so tables stand in place of line plots.",
          out);
}

static void put_version(const filling *f, FILE *out) {
    (void)f;
    fputs(KILTER_VERSION, out);
}

static const struct {
    const char *name;
    const unsigned char *text; /* text that replaces {{name}}; NULL: `put` writes the text */
    void (*put)(const filling *f, FILE *out);
} places[] = {
    {"title", NULL, put_title},     {"story", NULL, put_story},        {"live", NULL, put_live},
    {"data", NULL, put_data},       {"plot", NULL, put_plot},          {"plot_word", NULL, put_plot_word},
    {"version", NULL, put_version}, {"plot_style", kl_plot_css, NULL}, {"style", kl_page_css, NULL},
    {"script", kl_page_js, NULL},
};

static void put_place(const filling *f, const char *name, size_t size, FILE *out) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strlen(places[i].name) == size && memcmp(places[i].name, name, size) == 0) {
            if (places[i].text)
                fputs((const char *)places[i].text, out);
            else
                places[i].put(f, out);
        }
}

static void put_all(const filling *f, FILE *out) {
    const char *at = (const char *)kl_page_html, *open;
    while ((open = strstr(at, "{{"))) {
        fwrite(at, 1, (size_t)(open - at), out);
        const char *close = strstr(open, "}}");
        put_place(f, open + 2, (size_t)(close - open - 2), out);
        at = close + 2;
    }
    fputs(at, out);
}

kilter_status kl_page_print(const char *record, FILE *out, kilter_error *error) {
    kl_page page;
    kl_buffer deflated = {0};
    kilter_status status = kl_page_read(record, &page, error);
    if (status != KILTER_OK)
        return status;
    status = pack(record, &page, &deflated, error);
    if (status == KILTER_OK)
        put_all(&(filling){&page, page.title, &deflated}, out);
    kl_buffer_free(&deflated);
    kl_page_free(&page);
    return status;
}

void kl_page_print_live(const char *title, FILE *out) {
    put_all(&(filling){.title = title}, out);
}
