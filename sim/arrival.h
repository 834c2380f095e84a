/* Wait until a transfer ends or a time has passed, whichever comes first. No MPI call can do this. */
#ifndef KL_ARRIVAL_H
#define KL_ARRIVAL_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kl_arrival kl_arrival; /* the transfers and times for which one rank waits */

kl_arrival *kl_arrival_new(void);
void kl_arrival_free(kl_arrival *arrival);
/* Sleep until one of the rank's transfers ends, or for `seconds` at most. */
void kl_arrival_wait(kl_arrival *arrival, double seconds);

#ifdef __cplusplus
}
#endif

#endif
