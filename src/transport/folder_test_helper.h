/* A private folder for a test program, and an endpoint in it: setup and teardown for cmocka. */
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

/* Remove the folder. Fail if files were left in it. */
static inline int remove_folder(void **state) {
    (void)state;
    int failed = rmdir(folder);
    free(folder);
    return failed;
}

#endif
