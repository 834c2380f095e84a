/* kilter top --serve: serve a page that follows a run, and metrics. One thread of libmicrohttpd answers all
 * requests, and reads the states of runs only when a request comes. Each answer is complete, so no client
 * keeps a connection busy. After each answer, the EventSource of the page asks again, and names the last
 * state that it has seen. */
#include "top.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "page.h"
#include "records.h"
#include "sys/sys.h"

#ifdef KL_WITH_MICROHTTPD

#include <microhttpd.h>

enum { CLIENTS_MOST = 32, CLIENT_BYTES = 32 * 1024, CLIENT_PATIENCE_S = 10, SEEN_BYTES = 64 };

typedef struct server {
    const char *file;
    char hosts[2][32]; /* accepted values of a request's header Host */
    double interval_s, looked_s;
    kl_top top;
    char *path;            /* path of the record that the page shows; NULL: no run has begun yet */
    kl_buffer data;        /* data of the page, compressed (deflate) */
    char made[SEEN_BYTES]; /* name of the record's state from which `data` was made */
} server;

/* ---- state ---- */

static const kl_top_run *served(const server *s) {
    for (size_t i = 0; s->path && i < s->top.run_count; i++)
        if (strcmp(s->top.runs[i].path, s->path) == 0)
            return &s->top.runs[i];
    return NULL;
}

/* Choose the run that the page shows: the first one that is in progress. After its end, keep it until
 * another run begins. */
static void choose(server *s) {
    const kl_top_run *now = served(s);
    if (now && now->looks_gone == 0)
        return;
    for (size_t i = 0; i < s->top.run_count; i++)
        if (s->top.runs[i].looks_gone == 0 || !s->path) {
            free(s->path);
            s->path = strdup(s->top.runs[i].path);
            return;
        }
}

static void look(server *s) {
    kilter_error error;
    double now_s = kl_monotonic_s();
    if (now_s - s->looked_s < s->interval_s)
        return;
    s->looked_s = now_s;
    if (kl_top_update(&s->top, s->file, &error) != KILTER_OK)
        fprintf(stderr, "kilter: %s\n", error.text);
    choose(s);
}

/* Write a name for the record's present state: the time and size of its files. */
static void state_of(const server *s, char name[SEEN_BYTES]) {
    struct timespec written = {0};
    uint64_t bytes = 0;
    if (s->path)
        kl_record_file_look(s->path, &written, &bytes);
    snprintf(name, SEEN_BYTES, "%lld.%09ld-%" PRIu64, (long long)written.tv_sec, written.tv_nsec, bytes);
}

/* ---- answers ---- */

typedef struct answer {
    unsigned code;
    const char *type;
    char *text;
    size_t size;
} answer;

static answer plain(unsigned code, const char *text) {
    return (answer){code, "text/plain; charset=utf-8", strdup(text), strlen(text)};
}

static answer answer_page(server *s) {
    answer a = {MHD_HTTP_OK, "text/html; charset=utf-8", NULL, 0};
    const kl_top_run *run = served(s);
    FILE *out = open_memstream(&a.text, &a.size);
    if (out) {
        kl_page_print_live(run && run->report ? run->report->run.program : "kilter top", out);
        fclose(out);
    }
    return a;
}

static answer answer_data(server *s) {
    char state[SEEN_BYTES];
    kilter_error error;
    state_of(s, state);
    if (!s->path)
        return plain(MHD_HTTP_NOT_FOUND, "nothing has run yet\n");
    if (strcmp(state, s->made) != 0) {
        kl_buffer_clear(&s->data);
        *s->made = '\0';
        if (kl_page_data(s->path, &s->data, &error) != KILTER_OK)
            return plain(MHD_HTTP_SERVICE_UNAVAILABLE, error.text);
        memcpy(s->made, state, sizeof state);
    }
    answer a = {MHD_HTTP_OK, "application/octet-stream", malloc(s->data.size + 1), s->data.size};
    if (a.text)
        memcpy(a.text, s->data.data, s->data.size);
    return a;
}

/* Send one event, or two if the record has changed since the event that the client saw last. */
static answer answer_events(server *s, const char *seen) {
    char state[SEEN_BYTES], words[KL_TOP_WORD_BYTES] = "nothing runs";
    answer a = {MHD_HTTP_OK, "text/event-stream", NULL, 0};
    const kl_top_run *run = served(s);
    FILE *out = open_memstream(&a.text, &a.size);
    if (!out)
        return a;
    state_of(s, state);
    if (run)
        kl_top_progress(run, words);
    fprintf(out, "retry: %.0f\n\n", 1e3 * s->interval_s);
    if (!seen || strcmp(seen, state) != 0)
        fprintf(out, "id: %s\nevent: record\ndata: changed\n\n", state);
    if (run && run->looks_gone > 0)
        fprintf(out, "event: end\ndata: The run is over: %s\n\n", run->word);
    else
        fprintf(out, "event: state\ndata: %s%s%s\n\n", run ? run->word : "",
                run && *run->word && *words ? "; " : "", words);
    fclose(out);
    return a;
}

static answer answer_metrics(server *s) {
    answer a = {MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", NULL, 0};
    FILE *out = open_memstream(&a.text, &a.size);
    if (out) {
        kl_top_metrics(&s->top, out);
        fclose(out);
    }
    return a;
}

/* Accept only requests to this computer's own name. A page of another site sends another name in the
 * header Host. */
static bool is_own_host(const server *s, const char *host) {
    return host && (strcmp(host, s->hosts[0]) == 0 || strcmp(host, s->hosts[1]) == 0);
}

static answer answer_to(server *s, struct MHD_Connection *client, const char *path, const char *method) {
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return plain(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
    if (!is_own_host(s, MHD_lookup_connection_value(client, MHD_HEADER_KIND, "Host")))
        return plain(MHD_HTTP_FORBIDDEN, "use the name 127.0.0.1 or localhost in the address\n");
    look(s);
    if (strcmp(path, "/") == 0)
        return answer_page(s);
    if (strcmp(path, "/data") == 0)
        return answer_data(s);
    if (strcmp(path, "/events") == 0)
        return answer_events(s, MHD_lookup_connection_value(client, MHD_HEADER_KIND, "Last-Event-ID"));
    if (strcmp(path, "/metrics") == 0)
        return answer_metrics(s);
    return plain(MHD_HTTP_NOT_FOUND, "not found; this server has /, /data, /events and /metrics\n");
}

static enum MHD_Result handle(void *context, struct MHD_Connection *client, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state) {
    (void)version, (void)upload;
    static int begun;
    bool first = !*state;
    *state = &begun;
    if (first || *upload_size > 0) { /* answer in a later call; ignore the body of a request */
        *upload_size = 0;
        return MHD_YES;
    }
    answer a = answer_to(context, client, path, method);
    if (!a.text)
        return MHD_NO; /* memory ran out, so close the connection */
    struct MHD_Response *response = MHD_create_response_from_buffer(a.size, a.text, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, "Content-Type", a.type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    enum MHD_Result result = MHD_queue_response(client, a.code, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- starting and ending the server ---- */

static kilter_status start(server *s, uint32_t port, struct MHD_Daemon **daemon, kilter_error *error) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    snprintf(s->hosts[0], sizeof s->hosts[0], "127.0.0.1:%u", port);
    snprintf(s->hosts[1], sizeof s->hosts[1], "localhost:%u", port);
    *daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, (uint16_t)port, NULL, NULL, handle,
                         s, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)CLIENTS_MOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CLIENT_BYTES,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CLIENT_PATIENCE_S, MHD_OPTION_END);
    if (!*daemon)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "serving on port %u: this port is in use, or not allowed; choose another port", port);
    return KILTER_OK;
}

/* Block the signals that end the server, so that the server's thread does not get them. */
static sigset_t block_ends(void) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    return ends;
}

int kl_top_serve(const char *file, uint32_t port, double interval_s) {
    server s = {.file = file, .interval_s = interval_s, .looked_s = -interval_s};
    struct MHD_Daemon *daemon = NULL;
    kilter_error error;
    int got;
    sigset_t ends = block_ends();
    kilter_status status = kl_top_update(&s.top, file, &error);
    choose(&s);
    if (status == KILTER_OK)
        status = start(&s, port, &daemon, &error);
    if (status == KILTER_OK) {
        printf("serving http://%s/ and http://%s/metrics\n", s.hosts[0], s.hosts[0]);
        fflush(stdout);
        sigwait(&ends, &got);
        MHD_stop_daemon(daemon);
    }
    kl_top_free(&s.top);
    kl_buffer_free(&s.data);
    free(s.path);
    return status == KILTER_OK ? EXIT_SUCCESS : kilter_exit("kilter", &error);
}

#else

int kl_top_serve(const char *file, uint32_t port, double interval_s) {
    (void)file, (void)port, (void)interval_s;
    fprintf(stderr,
            "kilter top: this Kilter was built without libmicrohttpd, so it cannot serve; build it again "
            "with libmicrohttpd-dev\n");
    return KL_EXIT_USER;
}

#endif
