/* Choose how many cases a test tries. */
#ifndef KL_CASES_TEST_HELPER_H
#define KL_CASES_TEST_HELPER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Return `all`; under a sanitizer, where a case takes ten times as long, return `few`, unless
 * KILTER_TESTS=full is in the environment (`make soak`). */
static inline uint64_t kl_test_cases(uint64_t few, uint64_t all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const char *wanted = getenv("KILTER_TESTS");
    return wanted && strcmp(wanted, "full") == 0 ? all : few;
#else
    (void)few;
    return all;
#endif
}

#endif
