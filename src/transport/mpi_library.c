#include "transport/mpi_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kilter/version.h"
#include "transport/mpi_kind.h"

/* --- which MPI? --- */

/* Return the MPI that the program itself has loaded. Calling MPI_Get_library_version() before MPI_Init() is
 * allowed. */
static kl_mpi_kind of_process(void) {
    enum { VERSION_BYTES = 8192 }; /* bytes for the version text; the longest one, MPICH's, fits */
    char text[VERSION_BYTES] = "";
    int length, (*get_version)(char *text, int *length);
    void *symbol = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    memcpy(&get_version, &symbol, sizeof get_version);
    if (!symbol || get_version(text, &length) != 0)
        return KL_MPI_UNKNOWN;
    return kl_mpi_of_version(text);
}

static kilter_status of_user(kl_mpi_kind *kind, kilter_error *error) {
    const char *told = getenv("KILTER_MPI");
    *kind = KL_MPI_UNKNOWN;
    if (!told || !*told)
        return KILTER_OK;
    for (int k = KL_MPI_UNKNOWN + 1; k < KL_MPI_KINDS; k++)
        if (strcmp(told, kl_mpi_name((kl_mpi_kind)k)) == 0) {
            *kind = (kl_mpi_kind)k;
            return KILTER_OK;
        }
    return kl_fail(error, KILTER_ERR_USAGE,
                   "KILTER_MPI: Kilter does not know the MPI '%s'; use openmpi or mpich", told);
}

/* Find out which MPI to use. *kind stays unknown if there is no sign of an MPI. */
static kilter_status choose(kl_mpi_kind *kind, kilter_error *error) {
    kilter_status status = of_user(kind, error);
    kl_mpi_kind launcher = kl_mpi_of_launcher(), process = of_process();
    if (status != KILTER_OK)
        return status;
    if (*kind == KL_MPI_UNKNOWN)
        *kind = launcher;
    if (process != KL_MPI_UNKNOWN && *kind != KL_MPI_UNKNOWN && process != *kind)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "opening the mpi transport: %s %s, but this program is linked with %s; start it with %s",
            launcher == *kind ? "the launcher belongs to" : "KILTER_MPI says", kl_mpi_title(*kind),
            kl_mpi_title(process), kl_mpi_launcher(process));
    if (process != KL_MPI_UNKNOWN)
        *kind = process;
    return KILTER_OK;
}

/* --- Kilter's library for an MPI --- */

/* Load the library from the folder of libkilter, or else from where the system looks for libraries. The
 * library is never unloaded, because MPI cannot be unloaded. Its symbols are global, because Open MPI finds
 * its own symbols by name. */
static const kl_mpi_library *load(const char *file) {
    char path[4096] = "";
    static const char HERE = 0;
    Dl_info self;
    const char *slash = dladdr(&HERE, &self) && self.dli_fname ? strrchr(self.dli_fname, '/') : NULL;
    if (slash)
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, file);
    bool beside = slash && access(path, F_OK) == 0;
    void *handle = dlopen(beside ? path : file, RTLD_NOW | RTLD_GLOBAL);
    return handle ? dlsym(handle, "kl_mpi_library_linked") : NULL;
}

/* Load Kilter's library for this MPI. If the MPI is unknown, load the first of Kilter's MPI libraries that
 * is installed. */
static kilter_status find(kl_mpi_kind kind, const kl_mpi_library **library, kilter_error *error) {
    char file[64], why[256] = "";
    *library = NULL;
    for (int k = KL_MPI_UNKNOWN + 1; k < KL_MPI_KINDS && !*library; k++) {
        if (kind != KL_MPI_UNKNOWN && (int)kind != k)
            continue;
        snprintf(file, sizeof file, "libkilter-%s" KL_LIBRARY_SUFFIX, kl_mpi_name((kl_mpi_kind)k));
        *library = load(file);
        if (!*library)
            snprintf(why, sizeof why, "%s", dlerror());
    }
    if (*library)
        return KILTER_OK;
    const char *title = kind == KL_MPI_UNKNOWN ? "MPI" : kl_mpi_title(kind);
    return kl_fail(error, KILTER_ERR_USAGE,
                   "opening the mpi transport: Kilter's library for %s cannot be loaded (%s); install %s",
                   title, why, kind == KL_MPI_UNKNOWN ? "libkilter-openmpi or libkilter-mpich" : "it");
}

static kilter_status check_version(const kl_mpi_library *library, kilter_error *error) {
    if (strcmp(library->version, KILTER_VERSION) == 0)
        return KILTER_OK;
    return kl_fail(
        error, KILTER_ERR_USAGE,
        "opening the mpi transport: Kilter's library for MPI has version %s, but libkilter has version %s; "
        "install the same version of both",
        library->version, KILTER_VERSION);
}

kilter_status kl_mpi_open(double lost_after_s, int *rank, int *size, kl_transport **transport,
                          kilter_error *error) {
    kl_mpi_kind kind;
    const kl_mpi_library *library = &kl_mpi_library_linked;
    kilter_status status = choose(&kind, error);
    if (status == KILTER_OK && !library)
        status = find(kind, &library, error);
    if (status == KILTER_OK)
        status = check_version(library, error);
    if (status == KILTER_OK)
        status = library->open(lost_after_s, rank, size, transport, error);
    return status;
}
