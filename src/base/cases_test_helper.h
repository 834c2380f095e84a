/* Choose how many cases a test tries. */
#ifndef KL_CASES_TEST_HELPER_H
#define KL_CASES_TEST_HELPER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Return the number of cases to try: normally `all`. Under a sanitizer a case takes ten times as long, so
 * return `few`. With KILTER_TESTS=full in the environment (`make soak`), return `all` in any case. */
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
