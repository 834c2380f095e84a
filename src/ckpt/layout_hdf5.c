/* libkilter-ckpt: plan the file of a checkpoint with HDF5, and find the parts in such a file. HDF5 only sees
 * names, sizes and positions; rows do not pass through it. The serial HDF5 is enough, so one library serves
 * every MPI. */
#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/ckpt.h"
#include "kilter/version.h"

enum {
    ALIGNED_BYTES = 4096, /* parts of at least this many bytes begin at a multiple of this number */
    DIMENSIONS = 2,
};

/* --- errors --- */

typedef struct quiet { /* HDF5's function for printing errors, which be_quiet() replaces */
    H5E_auto2_t print;
    void *data;
} quiet;

static quiet be_quiet(void) {
    quiet before = {NULL, NULL};
    H5Eget_auto2(H5E_DEFAULT, &before.print, &before.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return before;
}

static void speak_again(const quiet *before) {
    H5Eset_auto2(H5E_DEFAULT, before->print, before->data);
}

static herr_t first_reason(unsigned n, const H5E_error2_t *e, void *reason) {
    if (n == 0)
        snprintf(reason, KILTER_ERROR_TEXT_BYTES / 2, "%s", e->desc ? e->desc : "");
    return 0;
}

static kilter_status failed(kilter_status status, const char *doing, const char *path, kilter_error *error) {
    char reason[KILTER_ERROR_TEXT_BYTES / 2] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_reason, reason);
    return kl_fail(error, status, "%s '%.200s': %s", doing, path, reason[0] ? reason : "HDF5 refuses");
}

/* --- properties --- */

/* Use no file locks: they fail on some shared file systems. They are not needed, because only complete files
 * get their final names. Version 1.8 of the format has checksums in all headers. */
static hid_t file_access(void) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_alignment(access, ALIGNED_BYTES, ALIGNED_BYTES);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
    H5Pset_file_locking(access, 0, 1);
#endif
    return access;
}

/* Give each dataset its position at once, without writing data there. */
static hid_t dataset_creation(void) {
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(creation, H5D_CONTIGUOUS);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    return creation;
}

static hid_t link_creation(void) {
    hid_t creation = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(creation, 1);
    return creation;
}

/* --- creating --- */

static bool put_attribute(hid_t file, const char *name, hid_t type, const void *value) {
    hid_t scalar = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(file, name, type, scalar, H5P_DEFAULT, H5P_DEFAULT);
    bool put = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    if (attribute >= 0)
        put = H5Aclose(attribute) >= 0 && put;
    H5Sclose(scalar);
    return put;
}

static bool put_facts(hid_t file, const kl_ckpt_facts *facts) {
    bool put = true;
#define PUT_COUNT(name)  put = put && put_attribute(file, #name, H5T_NATIVE_UINT64, &facts->name);
#define PUT_NUMBER(name) put = put && put_attribute(file, #name, H5T_NATIVE_DOUBLE, &facts->name);
    KL_CKPT_COUNTS(PUT_COUNT)
    KL_CKPT_NUMBERS(PUT_NUMBER)
#undef PUT_COUNT
#undef PUT_NUMBER
    hid_t text = H5Tcopy(H5T_C_S1);
    put = put && H5Tset_size(text, strlen(facts->loop) + 1) >= 0 &&
          put_attribute(file, "loop", text, facts->loop);
    H5Tclose(text);
    return put;
}

static bool put_part(hid_t file, kl_ckpt_part *part) {
    const hsize_t size[DIMENSIONS] = {part->rows, part->width};
    hid_t space = H5Screate_simple(part->width > 0 ? DIMENSIONS : 1, size, NULL);
    hid_t links = link_creation(), creation = dataset_creation();
    hid_t set = H5Dcreate2(file, part->name, part->words ? H5T_NATIVE_UINT64 : H5T_NATIVE_UINT8, space, links,
                           creation, H5P_DEFAULT);
    haddr_t at = set >= 0 ? H5Dget_offset(set) : HADDR_UNDEF;
    bool put = at != HADDR_UNDEF;
    part->at = at;
    if (set >= 0)
        put = H5Dclose(set) >= 0 && put;
    if (space >= 0)
        H5Sclose(space);
    H5Pclose(links);
    H5Pclose(creation);
    return put;
}

static kilter_status create(const char *path, kl_ckpt_plan *plan, kilter_error *error) {
    quiet before = be_quiet();
    hid_t access = file_access();
    H5Pset_fapl_stdio(
        access); /* HDF5's default driver refuses a path in /proc, but files in memory have such paths */
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    bool put = file >= 0 && put_facts(file, &plan->facts);
    for (size_t i = 0; i < plan->count && put; i++)
        put = put_part(file, &plan->parts[i]);
    kilter_status status = put ? KILTER_OK : failed(KILTER_ERR_SYSTEM, "creating", path, error);
    if (file >= 0 && H5Fclose(file) < 0 && put)
        status = failed(KILTER_ERR_SYSTEM, "creating", path, error);
    H5Pclose(access);
    speak_again(&before);
    return status;
}

/* --- reading --- */

static bool get_attribute(hid_t file, const char *name, hid_t type, void *value) {
    hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
    hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    bool got = space >= 0 && H5Sget_simple_extent_npoints(space) == 1 && H5Aread(attribute, type, value) >= 0;
    if (space >= 0)
        H5Sclose(space);
    if (attribute >= 0)
        H5Aclose(attribute);
    return got;
}

static bool get_name(hid_t file, char name[KL_CKPT_LOOP_BYTES]) {
    hid_t attribute = H5Aopen(file, "loop", H5P_DEFAULT);
    hid_t type = attribute >= 0 ? H5Aget_type(attribute) : -1;
    bool fits = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
                H5Tget_size(type) <= KL_CKPT_LOOP_BYTES;
    memset(name, 0, KL_CKPT_LOOP_BYTES);
    bool got = fits && get_attribute(file, "loop", type, name);
    name[KL_CKPT_LOOP_BYTES - 1] = '\0';
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return got;
}

static bool get_facts(hid_t file, kl_ckpt_facts *facts) {
    bool got = true;
#define GET_COUNT(name)  got = got && get_attribute(file, #name, H5T_NATIVE_UINT64, &facts->name);
#define GET_NUMBER(name) got = got && get_attribute(file, #name, H5T_NATIVE_DOUBLE, &facts->name);
    KL_CKPT_COUNTS(GET_COUNT)
    KL_CKPT_NUMBERS(GET_NUMBER)
#undef GET_COUNT
#undef GET_NUMBER
    return got && get_name(file, facts->loop);
}

/* Read the dimensions of a dataset. Only one or two dimensions are accepted. */
static bool get_shape(hid_t set, kl_ckpt_part *part) {
    hsize_t size[DIMENSIONS] = {0, 0};
    hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    int dimensions = space >= 0 ? H5Sget_simple_extent_ndims(space) : 0;
    bool got = dimensions >= 1 && dimensions <= DIMENSIONS &&
               H5Sget_simple_extent_dims(space, size, NULL) >= 0 && H5Tget_class(type) == H5T_INTEGER;
    part->rows = size[0];
    part->width = size[1];
    part->words = got && H5Tget_size(type) == sizeof(uint64_t);
    got = got && (part->words || H5Tget_size(type) == 1);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return got;
}

static bool get_part(hid_t file, kl_ckpt_part *part) {
    hid_t set = H5Dopen2(file, part->name, H5P_DEFAULT);
    haddr_t at = set >= 0 ? H5Dget_offset(set) : HADDR_UNDEF;
    bool got = at != HADDR_UNDEF && get_shape(set, part);
    part->at = at;
    if (set >= 0)
        H5Dclose(set);
    return got;
}

/* Return whether the file has no such part. A part's name has the form FOLDER/NAME. */
static bool lacks(hid_t file, const kl_ckpt_part *part) {
    char folder[KL_CKPT_PART_BYTES];
    snprintf(folder, sizeof folder, "%.*s", (int)strcspn(part->name, "/"), part->name);
    return H5Lexists(file, folder, H5P_DEFAULT) == 0 || H5Lexists(file, part->name, H5P_DEFAULT) == 0;
}

static kilter_status open_file(const char *path, hid_t *file, kilter_error *error) {
    if (access(path, R_OK) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "reading '%.200s': %s", path, strerror(errno));
    hid_t properties = file_access();
    *file = H5Fopen(path, H5F_ACC_RDONLY, properties);
    H5Pclose(properties);
    return *file < 0 ? failed(KILTER_ERR_SYSTEM, "reading", path, error) : KILTER_OK;
}

/* Return whether an attribute is missing. The headers are known to be right. So if HDF5 cannot read an
 * attribute that exists, memory ran out or the disk failed. */
static bool lacks_fact(hid_t file) {
    bool lacks = H5Aexists(file, "loop") == 0;
#define LACKS(name) lacks = lacks || H5Aexists(file, #name) == 0;
    KL_CKPT_COUNTS(LACKS)
    KL_CKPT_NUMBERS(LACKS)
#undef LACKS
    return lacks;
}

static kilter_status read_facts(const char *path, kl_ckpt_facts *facts, kilter_error *error) {
    quiet before = be_quiet();
    hid_t file = -1;
    kilter_status status = open_file(path, &file, error);
    if (status == KILTER_OK && !get_facts(file, facts))
        status = lacks_fact(file) ? kl_fail(error, KILTER_ERR_INPUT,
                                            "'%.200s' is no checkpoint: an attribute is missing", path)
                                  : failed(KILTER_ERR_SYSTEM, "reading", path, error);
    if (file >= 0)
        H5Fclose(file);
    speak_again(&before);
    return status;
}

static kilter_status read_parts(const char *path, kl_ckpt_plan *plan, kilter_error *error) {
    quiet before = be_quiet();
    hid_t file = -1;
    kilter_status status = open_file(path, &file, error);
    for (size_t i = 0; i < plan->count && status == KILTER_OK; i++)
        if (!get_part(file, &plan->parts[i]))
            status = lacks(file, &plan->parts[i])
                         ? kl_fail(error, KILTER_ERR_RANGE, "it has no '%s'", plan->parts[i].name)
                         : failed(KILTER_ERR_SYSTEM, "reading", path, error);
    if (file >= 0)
        H5Fclose(file);
    speak_again(&before);
    return status;
}

extern KILTER_API const kl_ckpt_library kl_ckpt_library_linked;
const kl_ckpt_library kl_ckpt_library_linked = {
    .version = KILTER_VERSION, .create = create, .read_facts = read_facts, .read_parts = read_parts};
