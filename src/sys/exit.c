/* Define kilter_exit(). It is in the folder sys and not in base, because it prints to stderr. */
#include <stdio.h>

#include "sys/sys.h"

int kilter_exit(const char *program, const kilter_error *error) {
    if (error->status == KILTER_OK || error->status == KILTER_ENDED)
        return 0;
    fprintf(stderr, "%s%s%s\n", program ? program : "", program ? ": " : "", error->text);
    if (error->status == KILTER_ERR_CANCELLED && kl_interrupted_by() > 0)
        /* shells report this exit code for a process that a signal killed */
        return 128 + kl_interrupted_by();
    switch (error->status) {
    case KILTER_ERR_USAGE:
    case KILTER_ERR_INPUT:
    case KILTER_ERR_RANGE:
        return 2;
    default:
        return 1;
    }
}
