/* Open and close a farm. From how the process was started, decide whether it is a master or a worker. For a
 * master, also decide which transport and which workers it uses. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm_private.h"

/* Write the address at which other machines reach the endpoint `bound`. An address that means all interfaces
 * is replaced by the host's name. */
static void address_for_others(const char *bound, char *address, size_t size) {
    static const char any[] = "tcp://0.0.0.0:";
    char host[KL_HOST_BYTES];
    kl_host_name(host);
    if (strncmp(bound, any, sizeof any - 1) == 0)
        snprintf(address, size, "tcp://%s:%s", host, bound + sizeof any - 1);
    else
        snprintf(address, size, "%s", bound);
}

static kilter_status listen_for_workers(kilter_farm *f, kilter_error *error) {
    char *bound = NULL, address[512], with_key[400] = "";
    kl_key key;
    kl_zmq_options options;
    kilter_status status = kl_allow_files((uint64_t)f->workers + KL_OTHER_FILES, error);
    if (status == KILTER_OK)
        status = kl_farm_zmq_options(&f->settings, f->settings.listen, true, &key, &options, error);
    if (status == KILTER_OK)
        status = kl_zmq_listen(f->settings.listen, &options, &bound, &f->transport, error);
    if (status != KILTER_OK)
        return status;
    address_for_others(bound, address, sizeof address);
    if (options.key)
        snprintf(with_key, sizeof with_key, " --key FILE, a copy of %s", key.file);
    if (!getenv("KILTER_RUN")) /* print nothing under `kilter run`, which starts the workers itself */
        fprintf(stderr, "%s: waiting for %u worker%s; start each with --join %s%s\n", f->settings.name,
                f->workers, f->workers == 1 ? "" : "s", address, with_key);
    free(bound);
    return KILTER_OK;
}

static void free_deliveries(kl_delivery_list *list) {
    while (list->first) {
        kl_delivery *next = list->first->next;
        kl_delivery_free(list->first);
        list->first = next;
    }
}

/* Free a master, even if it was only partly made. KILTER_ERR_RECORD: the record is incomplete. The
 * record must be closed after its last row is written, and before results are freed, because waiting
 * rows point to results. */
static kilter_status tear_down(kilter_farm *f, kilter_error *error) {
    double closed_s = kl_now_s(&f->clock) - f->opened_s;
    if (f->master) {
        kl_master_advise(f->master);
        kl_master_end(f->master);
    }
    kl_transport_close(f->transport);
    kl_farm_finish_local(f);
    kl_master_free(f->master);
    kl_signal_folder_remove(f->signals);
    free(f->signals);
    kilter_status status = kl_trace_close(f->record.trace, closed_s, error);
    free_deliveries(&f->run.results);
    free_deliveries(&f->storing.list);
    pthread_cond_destroy(&f->news);
    pthread_cond_destroy(&f->outside.shown);
    pthread_mutex_destroy(&f->lock);
    pthread_mutex_destroy(&f->screen.lock);
    kl_settings_free(&f->settings);
    free(f);
    return status;
}

static kilter_farm *new_farm(kl_settings *settings) {
    kilter_farm *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->settings = *settings;
    *settings = (kl_settings){0};
    f->clock = kl_clock_system();
    f->opened_s = kl_now_s(&f->clock);
    f->opened_unix_s = kl_unix_time_s();
    pthread_mutex_init(&f->lock, NULL);
    pthread_mutex_init(&f->screen.lock, NULL);
    pthread_cond_init(&f->news, NULL);
    kl_cond_init(&f->outside.shown);
    return f;
}

/* Return the seconds within which a new peer must say who it is. There is no such limit for ranks and
 * threads, because they are known already. */
static double greeting_s(const kilter_farm *f) {
    static const double LEAST_S = 10;
    double lost_after_s = f->settings.options.lost_after_s;
    return lost_after_s > LEAST_S ? lost_after_s : LEAST_S;
}

static void warn(void *self, const char *text, const char *more) {
    fprintf(stderr, "%s: %s%s\n", ((const kilter_farm *)self)->settings.name, text, more);
}

/* Return the number of cores of the host that the master and the workers on it may use. If workers are MPI
 * ranks or join by themselves, they may be bound to other cores than the master. For such farms, all cores of
 * the host count. */
static uint32_t cores_of_host(const kilter_farm *f) {
    bool apart = f->settings.listen || (f->transport && strcmp(f->transport->ops->name, "mpi") == 0);
    return apart ? kl_host_core_count() : kl_core_count();
}

static kl_organise organise_of(const kl_settings *s) {
    const char *how = s->organise ? s->organise : "auto";
    return strcmp(how, "peers") == 0                                                      ? KL_ORGANISE_PEERS
           : strcmp(how, "master") == 0 || s->options.once || kl_clock_system().simulated ? KL_ORGANISE_MASTER
                                                                                          : KL_ORGANISE_AUTO;
}

/* Make the farm's own folder inside the folder of --shared-folder. Every worker gets the path of this folder
 * with the run. */
static kilter_status make_signals(kilter_farm *f, kilter_error *error) {
    const char *folder = f->settings.shared_folder;
    kilter_error why;
    if (!folder)
        return KILTER_OK;
    if (kl_signal_folder_make(folder, &f->signals, &why) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_USAGE, "--shared-folder: %.200s; name a folder that can be written",
                       why.text);
    if (strlen(f->signals) >= sizeof((kl_peers_head *)NULL)->signals)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--shared-folder: the path '%.120s' is too long; name another folder", folder);
    return KILTER_OK;
}

/* Become the master of workers that are being started. If this fails, free the farm. */
static kilter_status become_master(kilter_farm *f, kilter_status status, kilter_farm **farm,
                                   kilter_error *error) {
    const char *policy = f->settings.policy ? f->settings.policy : "auto";
    const kl_help *help = kl_help_find(policy);
    kl_master_options options = {.policy = kl_own_policies_find(f->settings.own, help ? "auto" : policy),
                                 .help = help,
                                 .organise = organise_of(&f->settings),
                                 .reducer = kl_farm_reducer(f),
                                 .clock = f->clock,
                                 .program = f->settings.name,
                                 .program_version = f->settings.version,
                                 .attempts = f->settings.options.attempts,
                                 .may_join = f->settings.listen != NULL,
                                 .chooses = !f->settings.team || strcmp(f->settings.team, "all") != 0,
                                 .seats = f->seats,
                                 .release = f->settings.options.release,
                                 .once = f->settings.options.once,
                                 .greeting_s = f->local.supervisor || f->settings.listen ? greeting_s(f) : 0,
                                 .warn = warn,
                                 .lost = f->local.supervisor ? kl_farm_local_lost : NULL,
                                 .renew = f->local.supervisor ? kl_farm_renew_local : NULL,
                                 .used = kl_farm_used,
                                 .cores = cores_of_host(f),
                                 .limits = f->settings.limits,
                                 .self = f};
    kl_hello me;
    if (status == KILTER_OK)
        status = make_signals(f, error);
    options.signals = f->signals;
    kl_worker_introduce(NULL, &me);
    memcpy(options.host, me.host, sizeof options.host);
    if (status == KILTER_OK)
        status = kl_master_new(&options, f->transport, &f->master, error);
    if (status == KILTER_OK && !f->settings.listen)
        status = kl_farm_wait_for_workers(f, error);
    if (status == KILTER_OK)
        kl_master_state(f->master, &f->outside.state);
    if (status == KILTER_OK)
        status = kl_farm_start_service(f, error);
    if (status == KILTER_OK)
        kl_farm_open_interrupt(f);
    if (status != KILTER_OK) {
        tear_down(f, NULL);
        return status;
    }
    *farm = f;
    return KILTER_OK;
}

/* Return the default number of workers: one for each core or, if --bind gives each worker several cores, one
 * for each such group of cores. */
static uint32_t default_workers(const kl_settings *s) {
    bool threads = s->transport && strcmp(s->transport, "inproc") == 0;
    uint32_t cores = kl_core_count(), each = s->bind && !threads ? (uint32_t)strtoul(s->bind, NULL, 10) : 0;
    return each > cores ? 1 : each > 0 ? cores / each : cores;
}

static kilter_status take_advice(kilter_farm *f, kilter_error *error) {
    const kl_settings *s = &f->settings;
    if (!kl_settings_name_record(s))
        return KILTER_OK;
    kilter_status status = kl_record_team(s->team, s->name, &f->seats, error);
    if (status == KILTER_OK && f->seats == 0)
        fprintf(stderr, "%s: --team %s: the record has no number of active workers; all workers begin\n",
                s->name, s->team);
    return status;
}

static kilter_status open_master(kl_settings *settings, kilter_farm **farm, kilter_error *error) {
    kilter_farm *f = new_farm(settings);
    if (!f)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the farm: memory ran out");
    const kl_settings *s = &f->settings;
    f->workers = s->options.workers ? s->options.workers : s->listen ? 1 : default_workers(s);
    kilter_status status = take_advice(f, error);
    if (status == KILTER_OK)
        status = s->listen                                             ? listen_for_workers(f, error)
                 : s->transport && strcmp(s->transport, "inproc") == 0 ? kl_farm_start_threads(f, error)
                                                                       : kl_farm_start_processes(f, error);
    return become_master(f, status, farm, error);
}

/* Return the number of ranks that a launcher started; without a launcher, return 1. */
static int launched_ranks(void) {
    const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) > 1)
            return atoi(text);
    }
    return 1;
}

static kilter_status open_mpi(kl_settings *settings, kilter_farm **farm, kilter_error *error) {
    int rank, size;
    kl_transport *transport;
    kilter_status status = kl_mpi_open(settings->options.lost_after_s, &rank, &size, &transport, error);
    if (status != KILTER_OK)
        return status;
    if (rank > 0) {
        status = kl_serve(settings, transport, error);
        kl_transport_close(transport);
        return status;
    }
    kilter_farm *f = new_farm(settings);
    if (!f) {
        kl_transport_close(transport);
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the farm: memory ran out");
    }
    f->transport = transport;
    f->workers = (uint32_t)size - 1;
    if (size < 2)
        status = kl_fail(
            error, KILTER_ERR_USAGE,
            "--transport mpi: the only rank is the master; start at least two ranks, as in mpirun -n 2");
    return become_master(f, status, farm, error);
}

/* Return whether this process is the first rank. Only the first rank prints messages that concern all
 * ranks. */
static bool is_first_rank(void) {
    static const char *const RANKS[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof RANKS / sizeof *RANKS; i++) {
        const char *rank = getenv(RANKS[i]);
        if (rank && strcmp(rank, "0") != 0)
            return false;
    }
    return true;
}

kilter_status kl_farm_open(const kilter_farm_options *options, int *argc, char **argv, kilter_farm **farm,
                           kilter_error *error) {
    kl_settings settings = {0};
    kl_keep_standard_streams();
    kilter_status status = kl_settings_read(options, argc, argv, &settings, error);
    if (status != KILTER_OK)
        return status;
    const char *transport = settings.transport;
    bool simulated = kl_clock_system().simulated;
    if (!simulated && is_first_rank())
        kl_settings_warn(stderr, environ, argc ? *argc : 0, argv);
    bool mpi = transport ? strcmp(transport, "mpi") == 0
                         : !settings.listen && !settings.join && (simulated || launched_ranks() > 1);
    if (mpi)
        status = kl_settings_check_transport(&settings, "mpi", error);
    if (status == KILTER_OK && settings.record && strcmp(settings.record, "none") != 0 && !settings.join)
        status = kl_farm_check_record(settings.record, error);
    if (status == KILTER_OK && settings.resume && !settings.join)
        status = kl_farm_check_resume(settings.resume, error);
    if (status == KILTER_OK && settings.resume && simulated)
        status = kl_fail(error, KILTER_ERR_USAGE,
                         "--resume: a simulated machine stores no results; leave --resume out");
    if (status == KILTER_OK && simulated && !mpi)
        status = kl_fail(error, KILTER_ERR_USAGE, "--%s: a simulated machine has the mpi transport only",
                         settings.listen ? "listen"
                         : settings.join ? "join"
                                         : "transport");
    if (status != KILTER_OK)
        ;
    else if (settings.join)
        status = kl_farm_join(&settings, settings.join, "", error);
    else if (mpi)
        status = open_mpi(&settings, farm, error);
    else
        status = open_master(&settings, farm, error);
    kl_settings_free(&settings);
    return status;
}

kilter_status kilter_farm_close(kilter_farm *f, kilter_error *error) {
    if (!f)
        return KILTER_OK;
    kilter_status status = kl_farm_begin_use(f, "closing", NULL);
    if (status != KILTER_OK)
        return kl_fail(error, status,
                       "closing the farm: a run has not returned; close the farm after the run, and not from "
                       "the callback");
    /* when the control socket is closed, the control thread no longer uses the master */
    kl_farm_close_control(f);
    kl_farm_close_interrupt(f);
    kl_farm_end_service(f);
    return tear_down(f, error);
}
