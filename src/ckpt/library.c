/* Load libkilter-ckpt. Programs that want no checkpoints need neither this library nor HDF5. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/ckpt.h"
#include "kilter/version.h"

static const char FILE_NAME[] = "libkilter-ckpt" KL_LIBRARY_SUFFIX;

/* A program may use its own HDF5, of another version or for MPI. With RTLD_DEEPBIND, libkilter-ckpt calls the
 * HDF5 with which it was linked. With RTLD_LOCAL, the program does not see this HDF5. Sanitizers refuse
 * RTLD_DEEPBIND. */
static int binding(void) {
    bool sanitizer = dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace");
    return RTLD_NOW | RTLD_LOCAL | (sanitizer ? 0 : RTLD_DEEPBIND);
}

/* Look for the library beside this code first, then where the system looks. */
static void *open_library(void) {
    char path[4096] = "";
    static const char HERE = 0;
    Dl_info self;
    const char *slash = dladdr(&HERE, &self) && self.dli_fname ? strrchr(self.dli_fname, '/') : NULL;
    if (slash)
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, FILE_NAME);
    bool beside = slash && access(path, F_OK) == 0;
    return dlopen(beside ? path : FILE_NAME, binding());
}

kilter_status kl_ckpt_load(const kl_ckpt_library **library, kilter_error *error) {
    void *handle = open_library();
    const kl_ckpt_library *found = handle ? dlsym(handle, "kl_ckpt_library_linked") : NULL;
    if (!found)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "checkpoints need the library libkilter-ckpt, which cannot be loaded (%.300s); "
                       "install it, or run without checkpoints",
                       dlerror());
    if (strcmp(found->version, KILTER_VERSION) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "checkpoints need the library libkilter-ckpt of version %s, but the installed one has "
                       "version %.40s; install the same version",
                       KILTER_VERSION, found->version);
    *library = found;
    return KILTER_OK;
}
