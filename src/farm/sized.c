/* The farm's public functions, for programs whose structs have the sizes of another version of Kilter. These
 * functions convert each struct from or to the size of this version, which the other files use. See
 * docs/decisions/0025-public-structs.md */
#include "farm/farm_private.h"

kilter_status kilter_farm_open_sized(const kilter_farm_options *options, size_t bytes, int *argc, char **argv,
                                     kilter_farm **farm, kilter_error *error) {
    kilter_farm_options own;
    kilter_status status = kl_struct_in(KL_STRUCT(kilter_farm_options, own), options, bytes, error);
    return status == KILTER_OK ? kl_farm_open(&own, argc, argv, farm, error) : status;
}

kilter_status kilter_farm_run_sized(kilter_farm *farm, const kilter_run *run, size_t bytes,
                                    kilter_error *error) {
    kilter_run own;
    kilter_status status = kl_struct_in(KL_STRUCT(kilter_run, own), run, bytes, error);
    return status == KILTER_OK ? kl_farm_run(farm, &own, error) : status;
}

void kilter_farm_summary_get_sized(const kilter_farm *farm, kilter_farm_summary *summary, size_t bytes) {
    kilter_farm_summary own;
    kl_farm_summary_get(farm, &own);
    kl_struct_out(summary, bytes, KL_STRUCT(kilter_farm_summary, own));
}

kilter_status kilter_farm_grain_sized(kilter_farm *farm, const kilter_grain_options *options,
                                      size_t options_bytes, kilter_grain *grain, size_t grain_bytes,
                                      kilter_error *error) {
    kilter_grain_options own;
    kilter_grain answer = {0};
    kilter_status status = kl_struct_in(KL_STRUCT(kilter_grain_options, own), options, options_bytes, error);
    if (status == KILTER_OK)
        status = kl_farm_grain(farm, &own, &answer, error);
    if (status == KILTER_OK)
        kl_struct_out(grain, grain_bytes, KL_STRUCT(kilter_grain, answer));
    return status;
}

kilter_status kilter_farm_program_sized(kilter_farm *farm, kilter_program *program, size_t bytes,
                                        kilter_error *error) {
    kilter_program own = {0};
    kilter_status status = kl_farm_program(farm, &own, error);
    if (status == KILTER_OK)
        kl_struct_out(program, bytes, KL_STRUCT(kilter_program, own));
    return status;
}

kilter_status kilter_farm_expect_sized(kilter_farm *farm, const kilter_expectation *expectation, size_t bytes,
                                       kilter_error *error) {
    kilter_expectation own;
    kilter_status status = kl_struct_in(KL_STRUCT(kilter_expectation, own), expectation, bytes, error);
    return status == KILTER_OK ? kl_farm_expect(farm, &own, error) : status;
}
