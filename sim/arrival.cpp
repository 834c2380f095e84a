#include "sim/arrival.h"

#include <memory>

#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;
using simgrid::kernel::resource::Action;

namespace {

struct sleeper {
    sg4::SemaphorePtr wake = sg4::Semaphore::create(0);
    bool asleep = false;
};

} // namespace

/* SimGrid keeps this callback and its data until the end of the simulation, so they are not freed earlier. */
struct kl_arrival {
    std::shared_ptr<sleeper> self = std::make_shared<sleeper>();
};

kl_arrival *kl_arrival_new(void) {
    auto *arrival = new kl_arrival;
    sg4::Link::on_communication_state_change_cb([self = arrival->self](const auto &, Action::State before) {
        if (self->asleep && before == Action::State::STARTED) {
            self->asleep = false;
            self->wake->release();
        }
    });
    return arrival;
}

void kl_arrival_free(kl_arrival *arrival) {
    delete arrival;
}

void kl_arrival_wait(kl_arrival *arrival, double seconds) {
    arrival->self->asleep = true;
    arrival->self->wake->acquire_timeout(seconds);
    arrival->self->asleep = false;
}
