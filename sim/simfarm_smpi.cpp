/* kilter-simfarm-smpi: the synthetic farm under SMPI. SimGrid's SMPI runs all ranks of the farm in this
 * process. Each error is printed in one line on stderr, and gives an exit code above 0. SimGrid itself would
 * end with exit code 0 after some errors. */
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>
#include <unistd.h>
#include <xbt/log.h>

#include "sim/simfarm.h"

namespace sg4 = simgrid::s4u;

namespace {

struct simulation {
    kl_simfarm farm;
    std::vector<char *> arguments; /* Kilter's options; each rank gets a copy */
};

[[noreturn]] void give_up(const std::string &why, int code) {
    std::fflush(stdout);
    std::fprintf(stderr, "simfarm: %s\n", why.c_str());
    _exit(code); /* end without running destructors, because the ranks' stacks are in use */
}

/* Return the value of the option --NAME, and remove both from the arguments. "": the option is not given. */
std::string take(std::vector<char *> &arguments, const char *name) {
    for (size_t i = 1; i < arguments.size(); i++)
        if (std::strcmp(arguments[i], name) == 0) {
            if (i + 1 == arguments.size())
                give_up(std::string(name) + ": needs a file", 2);
            std::string value = arguments[i + 1];
            arguments.erase(arguments.begin() + (long)i, arguments.begin() + (long)i + 2);
            return value;
        }
    return "";
}

/* Switch off costs that SMPI adds to the costs of the platform and the farm. docs/reference/simulation.md
 * gives the reasons. */
void configure() {
    const char *const always[] = {
        "network/model:SMPI",
        "network/crosstraffic:0",
        "smpi/lat-factor:0:1",
        "smpi/bw-factor:0:1",
        "smpi/simulate-computation:no",
        "smpi/grow-injected-times:no",
        "smpi/test:0",
        "smpi/wtime:0",
        "smpi/async-small-thresh:65536",
#if SIMGRID_VERSION_MAJOR > 3 || SIMGRID_VERSION_MINOR > 34
        "precision/timing:1e-9",
#else
        "surf/precision:1e-9",
#endif
    };
    for (const char *option : always)
        sg4::Engine::set_config(option);
}

/* Put the master on the first host and a worker on every host. Hosts whose names end in numbers are sorted
 * by these numbers. */
std::vector<sg4::Host *> everywhere(const sg4::Engine &engine) {
    std::vector<sg4::Host *> hosts = engine.get_all_hosts();
    std::sort(hosts.begin(), hosts.end(), [](const sg4::Host *a, const sg4::Host *b) {
        return strverscmp(a->get_cname(), b->get_cname()) < 0;
    });
    if (!hosts.empty())
        hosts.insert(hosts.begin(), hosts.front());
    return hosts;
}

std::vector<sg4::Host *> as_listed(const sg4::Engine &engine, const std::string &path) {
    std::ifstream file(path);
    const std::string option = "--hosts " + path;
    if (!file)
        give_up(option + ": " + std::strerror(errno), 2);
    std::vector<sg4::Host *> hosts;
    std::string name;
    for (int line = 1; std::getline(file, name); line++) {
        sg4::Host *host = engine.host_by_name_or_null(name);
        if (!host) {
            std::string why = option;
            why.append(", line ").append(std::to_string(line));
            give_up(why.append(": the platform has no host '").append(name).append("'"), 2);
        }
        hosts.push_back(host);
    }
    return hosts;
}

/* Run one rank. The first rank with an error, such as a bad option, prints the error and ends the process. So
 * only one rank prints it. */
void be_rank(const simulation *all) {
    std::vector<char *> arguments = all->arguments;
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kl_simfarm_run(&all->farm, count, arguments.data(), &error);
    if (status != KILTER_OK && status != KILTER_ENDED)
        _exit(kilter_exit("simfarm", &error));
}

void place(const simulation *all, const std::vector<sg4::Host *> &hosts) {
    SMPI_app_instance_register("farm", nullptr, static_cast<int>(hosts.size()));
    for (size_t i = 0; i < hosts.size(); i++) {
        std::string rank = std::to_string(i);
        sg4::ActorPtr actor = sg4::Actor::init("rank " + rank, hosts[i]);
        actor->set_property("instance_id", "farm");
        actor->set_property("rank", rank);
        actor->start([all] { be_rank(all); });
    }
}

/* End the simulation if a host is switched off. SMPI does not tell the other ranks that a rank is lost, so
 * they might wait for ever. */
void watch(const std::vector<sg4::Host *> &hosts) {
    sg4::Host::on_state_change_cb([hosts](const sg4::Host &host) {
        if (!host.is_on() && std::find(hosts.begin(), hosts.end(), &host) != hosts.end())
            give_up("host " + host.get_name() + " is switched off at " +
                        std::to_string(sg4::Engine::get_clock()) +
                        " s by its state profile, and SMPI does not report its lost ranks; use a speed "
                        "profile that drops to 1e-9 instead",
                    1);
    });
    sg4::Engine::on_deadlock_cb([] {
        give_up("all ranks wait for each other at " + std::to_string(sg4::Engine::get_clock()) +
                    " s (a deadlock)",
                1);
    });
}

} // namespace

int main(int argc, char **argv) {
    simulation all;
    kilter_error error;
    std::vector<char *> arguments(argv, argv + argc);
    std::string platform = take(arguments, "--platform"), list = take(arguments, "--hosts");
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    if (kl_simfarm_read(&count, arguments.data(), &all.farm, &error) != KILTER_OK)
        return kilter_exit("simfarm", &error);
    arguments.resize(static_cast<size_t>(count));
    all.arguments = arguments;
    if (platform.empty())
        give_up("--platform: name a platform file of SimGrid", 2);

    int own_argc = 1; /* SimGrid gets no arguments, because it must not read our options */
    sg4::Engine engine(&own_argc, argv);
    xbt_log_control_set("root.thres:critical");
    xbt_log_control_set("root.fmt:simfarm:%eSimGrid%esays:%e%m%n");
    configure();
    std::signal(SIGABRT, [](int) {
        _exit(2);
    }); /* if SimGrid rejects the platform, it may print the reason and raise SIGABRT */
    try {
        engine.load_platform(platform);
    } catch (const std::exception &refusal) {
        give_up("--platform " + platform + ": SimGrid says: " + refusal.what(), 2);
    }
    std::signal(SIGABRT, SIG_DFL);
    std::vector<sg4::Host *> hosts = list.empty() ? everywhere(engine) : as_listed(engine, list);
    if (hosts.size() < 2)
        give_up("a farm needs a host for its master and one for a worker, but the number of hosts is " +
                    std::to_string(hosts.size()),
                2);
    SMPI_init();
    place(&all, hosts);
    watch(hosts);
    engine.run();
    SMPI_finalize();
    kl_simfarm_free(&all.farm);
    return 0;
}
