/* Setup and teardown functions for tests with cmocka: make a private folder for a test program, and the
 * address of an endpoint in this folder. */
#ifndef KL_FOLDER_TEST_HELPER_H
#define KL_FOLDER_TEST_HELPER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/sys.h"

static char *folder;
static char ipc[128]; /* an endpoint in the test's folder */

static inline int make_folder(void **state) {
    (void)state;
    if (kl_private_dir(&folder, NULL) != KILTER_OK)
        return -1;
    snprintf(ipc, sizeof ipc, "ipc://%s/socket", folder);
    return 0;
}

/* Remove the test's folder. Fail if the test left files in it. */
static inline int remove_folder(void **state) {
    (void)state;
    int failed = rmdir(folder);
    free(folder);
    return failed;
}

#endif
