/* kilter hosts: measure hosts, say how fit they are, and pick some. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "hosts/hosts.h"
#include "report/print.h"
#include "sys/sys.h"

typedef struct hosts_request {
    bool json, here, serve, no_network;
    const char *ssh, *pick;
    double weight, watch_s, patience_s;
    uint32_t wanted;
    uint64_t seed;
} hosts_request;

/* One measurement of all hosts, with each host's fitness and the hosts that were picked. */
typedef struct view {
    const hosts_request *request;
    kl_hosts *hosts;
    size_t count;
    kl_fit *fits;
    bool picks;
    kl_pick pick;
} view;

/* --- printing a measurement as text --- */

typedef struct shown {
    char *name, *why;
    double qos, cpu, memory, swap, disk, net, load;
    uint32_t cores;
    size_t place;
    char words[KL_CELL_BYTES];
} shown;

static int by_fitness(const void *left, const void *right) {
    const shown *a = left, *b = right;
    if (a->qos != b->qos)
        return a->qos > b->qos ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Return what to print about a host. If the host did not answer, the factors of its fitness are NAN. */
static shown shown_host(const view *v, size_t i) {
    const kl_fit *fit = &v->fits[i];
    const kl_reading *r = kl_hosts_reading(v->hosts, i);
    bool known = fit->state == KL_FIT_KNOWN;
    shown s = {.name = kl_hosts_at(v->hosts, i)->name,
               .qos = fit->qos,
               .cpu = known ? fit->cpu : NAN,
               .memory = known ? fit->memory : NAN,
               .swap = known ? fit->swap : NAN,
               .disk = known ? fit->disk : NAN,
               .net = known ? fit->net : NAN,
               .load = known ? r->load : NAN,
               .cores = known ? r->cores : 0,
               .place = i};
    char why[KL_FIT_WHY_BYTES];
    kl_fit_why(fit, r, why);
    const char *trouble = kl_hosts_trouble(v->hosts, i);
    snprintf(s.words, sizeof s.words, "%s%s%s", why, *trouble ? ": " : "", trouble);
    return s;
}

static const void *row_at(const void *context, size_t row) {
    return &((const shown *)context)[row];
}

static void show_cores(const void *context, size_t row, char *cell) {
    const shown *s = row_at(context, row);
    if (s->cores > 0)
        kl_cell(cell, "%u", s->cores);
    else
        kl_cell(cell, "-");
}

static void print_table(shown *hosts, size_t count) {
    static const kl_row_column columns[] = {
        {.column = {"host", KL_WHOLE, NULL}, .style = KL_AS_TEXT, .offset = offsetof(shown, name)},
        KL_SHOW_REAL("fitness", REAL, shown, qos, 2, 0),
        {.column = {"cores", false, show_cores}},
        KL_SHOW_REAL("processor", REAL, shown, cpu, 2, 0),
        KL_SHOW_REAL("memory", REAL, shown, memory, 2, 0),
        KL_SHOW_REAL("swap", REAL, shown, swap, 2, 0),
        KL_SHOW_REAL("disk", REAL, shown, disk, 2, 0),
        KL_SHOW_REAL("network", REAL, shown, net, 2, 0),
        KL_SHOW_REAL("load", REAL, shown, load, 1, 0),
        {.column = {"why the fitness is less than 1", KL_WHOLE, NULL},
         .style = KL_AS_TEXT,
         .offset = offsetof(shown, why)},
    };
    qsort(hosts, count, sizeof *hosts, by_fitness);
    for (size_t i = 0; i < count; i++)
        hosts[i].why = hosts[i].words;
    kl_print_rows(stdout, columns, sizeof columns / sizeof *columns, row_at, hosts, count);
}

static int print_text(const view *v) {
    shown *hosts = calloc(v->count + 1, sizeof *hosts);
    if (!hosts)
        return kl_cmd_usage(&kl_cmd_hosts, "memory ran out");
    for (size_t i = 0; i < v->count; i++)
        hosts[i] = shown_host(v, i);
    print_table(hosts, v->count);
    printf("%zu host%s, mean fitness %.2f; the network has %.0f %% of the weight\n", v->count,
           v->count == 1 ? "" : "s", kl_fit_mean(v->fits, v->count), 100 * (1 - v->request->weight));
    free(hosts);
    return kl_cmd_printed();
}

/* Print only the names of the picked hosts, for use as a hostfile. */
static int print_picked(const view *v) {
    for (uint32_t i = 0; i < v->pick.count; i++)
        puts(kl_hosts_at(v->hosts, v->pick.at[i])->name);
    if (*v->pick.why)
        fprintf(stderr, "kilter hosts: %s\n", v->pick.why);
    return kl_cmd_printed();
}

/* --- printing a measurement as JSON --- */

static void put_reading(kl_json *j, const kl_reading *r) {
    kl_json_count(j, "cores", r->cores);
    kl_json_number(j, "probe", r->probe);
    kl_json_number(j, "steps_per_s", r->steps_per_s);
    kl_json_number(j, "quota_cores", r->quota);
    kl_json_number(j, "memory_left_bytes", r->memory_left);
    kl_json_number(j, "memory_total_bytes", r->memory_total);
    kl_json_number(j, "swap_free_bytes", r->swap_free);
    kl_json_number(j, "swap_total_bytes", r->swap_total);
    kl_json_number(j, "load", r->load);
    kl_json_number(j, "waits_cpu", r->waits_cpu);
    kl_json_number(j, "waits_memory", r->waits_memory);
    kl_json_number(j, "waits_io", r->waits_io);
}

static void put_fit(kl_json *j, const kl_fit *fit) {
    kl_json_number(j, "fitness", fit->qos);
    kl_json_number(j, "host_fitness", fit->host);
    kl_json_number(j, "processor", fit->cpu);
    kl_json_number(j, "memory", fit->memory);
    kl_json_number(j, "swap", fit->swap);
    kl_json_number(j, "disk", fit->disk);
    kl_json_number(j, "network", fit->net);
    kl_json_number(j, "speed", fit->speed);
}

static void put_host(kl_json *j, const view *v, size_t i) {
    const kl_listed_host *listed = kl_hosts_at(v->hosts, i);
    const kl_fit *fit = &v->fits[i];
    shown s = shown_host(v, i);
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "host", listed->name);
    kl_json_count(j, "slots", listed->slots);
    kl_json_truth(j, "reachable", fit->state == KL_FIT_KNOWN);
    put_fit(j, fit);
    if (fit->state == KL_FIT_KNOWN)
        put_reading(j, kl_hosts_reading(v->hosts, i));
    kl_json_text(j, "why", *s.words ? s.words : NULL);
    kl_json_close(j, '}');
}

static void put_links(kl_json *j, const view *v) {
    size_t count;
    const kl_link *links = kl_hosts_links(v->hosts, &count);
    kl_json_open(j, "links", '[');
    for (size_t i = 0; i < count; i++) {
        kl_json_open(j, NULL, '{');
        kl_json_text(j, "from", kl_hosts_at(v->hosts, links[i].from)->name);
        kl_json_text(j, "to", kl_hosts_at(v->hosts, links[i].to)->name);
        kl_json_number(j, "trip_s", links[i].bytes_per_s > 0 ? links[i].trip_s : NAN);
        kl_json_number(j, "bytes_per_s", links[i].bytes_per_s);
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void put_pick(kl_json *j, const view *v) {
    kl_json_open(j, "picked", '[');
    for (uint32_t i = 0; i < v->pick.count; i++)
        kl_json_text(j, NULL, kl_hosts_at(v->hosts, v->pick.at[i])->name);
    kl_json_close(j, ']');
    kl_json_count(j, "seed", v->request->seed);
    kl_json_text(j, "remark", *v->pick.why ? v->pick.why : NULL);
}

static int print_json(const view *v) {
    kl_json j = {.out = stdout, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_number(&j, "unix_s", kl_unix_time_s());
    kl_json_number(&j, "weight", v->request->weight);
    kl_json_number(&j, "mean_fitness", kl_fit_mean(v->fits, v->count));
    kl_json_open(&j, "hosts", '[');
    for (size_t i = 0; i < v->count; i++)
        put_host(&j, v, i);
    kl_json_close(&j, ']');
    put_links(&j, v);
    if (v->picks)
        put_pick(&j, v);
    kl_json_close(&j, '}');
    putchar('\n');
    return kl_cmd_printed();
}

/* --- measuring hosts and picking some --- */

static kilter_status pick(view *v, kilter_error *error) {
    const hosts_request *request = v->request;
    const kl_picker *picker = request->pick ? kl_picker_find(request->pick) : kl_picker_at(0);
    kl_candidate *candidates = calloc(v->count + 1, sizeof *candidates);
    kl_pick_ask ask = {
        .wanted = request->wanted, .seed = request->seed, .start = (uint32_t)(request->seed % v->count)};
    if (!candidates)
        return kl_fail(error, KILTER_ERR_MEMORY, "picking hosts: memory ran out");
    kl_pick_by_weight(v->fits, (uint32_t)v->count, request->weight, candidates, &ask);
    kilter_status status = kl_pick_hosts(picker, &ask, &v->pick, error);
    free(candidates);
    if (status == KILTER_OK && (v->pick.count < request->wanted || v->pick.count == 0)) {
        status = kl_fail(error, KILTER_ERR_SYSTEM, "%u of the %u wanted hosts can be reached", v->pick.count,
                         request->wanted > 0 ? request->wanted : 1);
        kl_pick_free(&v->pick);
    }
    return status;
}

static int show(view *v) {
    kilter_error error;
    kl_hosts_start(v->hosts);
    while (!kl_hosts_poll(v->hosts, 1))
        ;
    kilter_status status = kl_hosts_fitness(v->hosts, v->request->weight, 0, v->fits, &error);
    if (status == KILTER_OK && v->picks)
        status = pick(v, &error);
    int code = EXIT_SUCCESS;
    if (status != KILTER_OK)
        code = kilter_exit("kilter hosts", &error);
    else if (v->request->json)
        code = print_json(v);
    else
        code = v->picks ? print_picked(v) : print_text(v);
    kl_pick_free(&v->pick);
    return code;
}

/* Repeat the measurement until a signal or a failure ends the command. */
static int watch(view *v) {
    for (;;) {
        double next_s = kl_monotonic_s() + v->request->watch_s;
        time_t now = time(NULL);
        struct tm local;
        char clock[16];
        strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &local));
        if (!v->request->json)
            printf("%s\n", clock);
        int code = show(v);
        if (code != EXIT_SUCCESS)
            return code;
        if (!v->request->json)
            putchar('\n');
        while (kl_monotonic_s() < next_s)
            kl_nap_s(next_s - kl_monotonic_s());
    }
}

static int open_and_show(const hosts_request *request, const kl_host_list *list, bool slurm) {
    kl_hosts_options options = {.ssh = request->ssh,
                                .slurm = slurm,
                                .no_network = request->no_network,
                                .patience_s = request->patience_s};
    kilter_error error;
    view v = {.request = request, .count = list->count, .picks = request->pick || request->wanted > 0};
    v.fits = calloc(list->count + 1, sizeof *v.fits);
    if (!v.fits)
        return kl_cmd_usage(&kl_cmd_hosts, "memory ran out");
    int code = EXIT_FAILURE;
    if (kl_hosts_open(list, &options, &v.hosts, &error) != KILTER_OK)
        code = kilter_exit("kilter hosts", &error);
    else
        code = request->watch_s > 0 ? watch(&v) : show(&v);
    kl_hosts_close(v.hosts);
    free(v.fits);
    return code;
}

/* --- the command line --- */

#define AT(member) .offset = offsetof(hosts_request, member)

static const kl_option rows[] = {
    {"weight", "W",
     "Weight of processor and memory in a host's fitness, 0 to 1 (default: 0.7); the weight of the network "
     "is 1 - W. Use 1 for programs that only compute, 0.5 for equal weights.",
     KL_OPTION_NUMBER, AT(weight), .most = 1},
    {"pick", "PICKER",
     "Print only the names of hosts to use. The picker forecast is the default and takes those with which a "
     "program ends first. The picker round-robin takes hosts of fitness 0.7 or more, random 0.5 or more. The "
     "picker best-few draws from the fittest hosts, twice as many as wanted.",
     KL_OPTION_TEXT, AT(pick), .words = "forecast best round-robin random best-few"},
    {"count", "N", "Pick N hosts (default: as many as the picker finds useful).", KL_OPTION_UINT32,
     AT(wanted), .least = 1, .most = KL_LISTED_MOST, .letter = 'n'},
    {"seed", "N", "Seed of random picks; for round-robin it determines the first host (default: random).",
     KL_OPTION_UINT64, AT(seed)},
    {"ssh", "COMMAND",
     "Reach a host with COMMAND HOST SCRIPT (default: ssh -o BatchMode=yes, or srun for the hosts of a Slurm "
     "allocation).",
     KL_OPTION_TEXT, AT(ssh)},
    {"patience", "SECONDS", "A host that does not answer within this time is unreachable (default: 10).",
     KL_OPTION_NUMBER, AT(patience_s), .least = 0, .most = 3600, .above = true},
    {"no-network", NULL, "Do not measure the links between the hosts.", KL_OPTION_SWITCH, AT(no_network)},
    {"watch", "SECONDS", "Measure again every SECONDS until interrupted.", KL_OPTION_NUMBER, AT(watch_s),
     .least = 0, .most = 86400, .above = true},
    {"here", NULL, "Measure this host alone, also within a Slurm allocation.", KL_OPTION_SWITCH, AT(here)},
    {"serve", NULL,
     "Answer the requests of another kilter on the standard input; it starts this command on each host.",
     KL_OPTION_SWITCH, AT(serve)},
    KL_JSON_ROW(hosts_request),
};

static int check(const kl_command *command, const hosts_request *request, const char *file) {
    if (file && (request->here || request->serve))
        return kl_cmd_usage(command, "FILE and --%s cannot be combined", request->here ? "here" : "serve");
    if (request->watch_s > 0 && (request->pick || request->wanted > 0))
        return kl_cmd_usage(command, "--watch and --%s cannot be combined", request->pick ? "pick" : "count");
    return EXIT_SUCCESS;
}

static int serve(void) {
    kilter_error error;
    return kl_hosts_serve(STDIN_FILENO, STDOUT_FILENO, &error) == KILTER_OK
               ? EXIT_SUCCESS
               : kilter_exit("kilter hosts", &error);
}

static int run_request(const hosts_request *request, const char *file) {
    kl_host_list list = {0};
    kilter_error error;
    bool slurm = false;
    if (request->here)
        unsetenv("SLURM_JOB_NODELIST");
    if (kl_hosts_list(file, &list, &slurm, &error) != KILTER_OK)
        return kilter_exit("kilter hosts", &error);
    int code = open_and_show(request, &list, slurm);
    kl_host_list_free(&list);
    return code;
}

static int run(const kl_command *command, int argc, char **argv) {
    hosts_request request = {.weight = 0.7, .seed = kl_token() >> 16};
    const char *file;
    int first, code = kl_cmd_read(command, argc, argv, &request, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, NULL, &file);
    if (code == EXIT_SUCCESS)
        code = check(command, &request, file);
    if (code != EXIT_SUCCESS)
        return code;
    return request.serve ? serve() : run_request(&request, file);
}

const kl_command kl_cmd_hosts = {
    .name = "hosts",
    .summary = "Measure hosts: how fit each is for a program, and which to use.",
    .text = "usage: kilter hosts [OPTION]… [FILE]\n\n"
            "Measures the hosts in FILE, all at once, and prints how fit each is now, from 0 to 1,\n"
            "and what makes it less fit. FILE is a hostfile of Open MPI or MPICH, a list of names, or\n"
            "an ssh configuration. Without FILE: the hosts of the Slurm allocation, else this host.\n"
            "\n"
            "A thread on each core computes for 0.2 s to see what part of the cores a new program\n"
            "gets. Limits of control groups, free memory, swap space, waits for memory and disk, and\n"
            "the links between the hosts count as well. An unreachable host has the fitness 0.\n"
            "Kilter must be installed on the hosts, in the same folder as here or in PATH.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
