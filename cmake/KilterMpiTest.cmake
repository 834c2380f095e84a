# Programs and tests that run under MPI. Callers loop over KILTER_MPIS with the variable `mpi`, and set `suffix` to
# ${KILTER_SUFFIX_${mpi}}: targets and tests are called NAME under the first MPI, and NAME-mpich under the second.
# Tests carry the labels `mpi` and the MPI's name; the target mpi_tests builds exactly the programs that these tests start.
if(KILTER_MPIS)
    add_custom_target(mpi_tests)
    if(KILTER_SANITIZE)
        add_library(keep_modules MODULE ${PROJECT_SOURCE_DIR}/tests/keep_modules.c)
        add_dependencies(mpi_tests keep_modules)
    endif()
endif()

# kilter_mpi_program(NAME SOURCE…): a program that calls MPI.
function(kilter_mpi_program name)
    add_executable(${name}${suffix} ${ARGN})
    target_link_libraries(${name}${suffix} PRIVATE mpi_${mpi})
    if(suffix) # let clang-tidy check each source only for the first MPI
        set_target_properties(${name}${suffix} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    endif()
endfunction()

# kilter_mpi_test_program(NAME SOURCE…): a program that calls MPI and Kilter's private functions.
function(kilter_mpi_test_program name)
    kilter_mpi_program(${name} ${ARGN})
    target_compile_definitions(${name}${suffix} PRIVATE _GNU_SOURCE)
    target_link_libraries(${name}${suffix} PRIVATE kilter_${mpi}_objects)
    add_dependencies(mpi_tests ${name}${suffix})
endfunction()

# Set `out` to the launcher flags for tests. Tests may run more ranks than there are cores. Ranks are not bound to cores, because each mpirun would
# bind its first rank to the first core.
function(kilter_mpi_launcher_flags out)
    set(flags "")
    if(mpi STREQUAL openmpi)
        set(flags --oversubscribe --bind-to none)
    endif()
    set(${out} ${flags} PARENT_SCOPE)
endfunction()

# Set the properties of all tests under MPI. Open MPI refuses to run as root unless two variables allow it.
function(kilter_mpi_test_properties name ranks)
    set_tests_properties(${name} PROPERTIES LABELS "mpi;${mpi}" TIMEOUT 120 PROCESSORS ${ranks}
                         ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
endfunction()

# kilter_mpi_test(NAME RANKS TARGET ARGUMENT…): add a test that runs a program, made by one of the functions above, on RANKS ranks.
function(kilter_mpi_test name ranks target)
    kilter_mpi_launcher_flags(flags)
    add_dependencies(mpi_tests ${target}${suffix})
    add_test(NAME ${name}${suffix} COMMAND ${KILTER_MPIEXEC_${mpi}} ${flags} -n ${ranks} $<TARGET_FILE:${target}${suffix}> ${ARGN})
    kilter_mpi_test_properties(${name}${suffix} ${ranks})
endfunction()

# Add a test in which ranks must survive when other ranks are killed. The launcher's exit code does not show whether the surviving ranks did the
# right thing, so the test passes if the program prints SAYS.
function(kilter_mpi_survivors_test name says ranks target)
    kilter_mpi_launcher_flags(flags)
    if(mpi STREQUAL mpich)
        set(flags -disable-auto-cleanup)
    endif()
    add_test(NAME ${name}${suffix} COMMAND ${KILTER_MPIEXEC_${mpi}} ${flags} -n ${ranks} $<TARGET_FILE:${target}${suffix}> ${ARGN})
    kilter_mpi_test_properties(${name}${suffix} ${ranks})
    set_tests_properties(${name}${suffix} PROPERTIES PASS_REGULAR_EXPRESSION ${says})
    set_property(TEST ${name}${suffix} APPEND PROPERTY ENVIRONMENT "OMPI_MCA_orte_enable_recovery=1;KILTER_MPI_SHIELD=1")
endfunction()

# kilter_mpi_script_test(NAME RANKS COMMAND…): add a test whose COMMAND calls the MPI launcher itself.
function(kilter_mpi_script_test name ranks)
    add_test(NAME ${name}${suffix} COMMAND ${ARGN})
    kilter_mpi_test_properties(${name}${suffix} ${ranks})
endfunction()
