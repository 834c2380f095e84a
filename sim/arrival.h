/* Waiting for a time and for the end of transfers at once, which no call of MPI's does. */
#ifndef KL_ARRIVAL_H
#define KL_ARRIVAL_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kl_arrival kl_arrival; /* one rank's */

kl_arrival *kl_arrival_new(void);
void kl_arrival_free(kl_arrival *arrival);
/* Sleeps until a transfer ends, anybody's, or `seconds` have passed. */
void kl_arrival_wait(kl_arrival *arrival, double seconds);

#ifdef __cplusplus
}
#endif

#endif
