/* Copy public structs from and to programs that were compiled with an older or a newer Kilter. */
#include <string.h>

#include "base/base.h"
#include "kilter/version.h"

static bool all_zero(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

kilter_status kl_struct_in(kl_struct own, const void *theirs, size_t bytes, kilter_error *error) {
    size_t common = bytes < own.bytes ? bytes : own.bytes;
    if (!all_zero((const unsigned char *)theirs + common, bytes - common))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "%s: the program sets a member that this Kilter (%s) does not have; run it with the "
                       "Kilter it was compiled for, or a newer one",
                       own.name, KILTER_VERSION);
    memset(own.at, 0, own.bytes);
    memcpy(own.at, theirs, common);
    return KILTER_OK;
}

void kl_struct_out(void *theirs, size_t bytes, kl_struct own) {
    size_t common = bytes < own.bytes ? bytes : own.bytes;
    memcpy(theirs, own.at, common);
    memset((unsigned char *)theirs + common, 0, bytes - common);
}
