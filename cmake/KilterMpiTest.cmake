# kilter_mpi_test(NAME RANKS COMMAND…): a test that runs COMMAND on RANKS ranks, under Open MPI or MPICH, whichever
# the build found. COMMAND starts with a target or a file. The tests carry the label `mpi`, and the target mpi_tests
# builds just what they start.
if(KILTER_MPI)
    add_custom_target(mpi_tests)
endif()

function(kilter_mpi_test name ranks command)
    if(NOT KILTER_MPI)
        return()
    endif()
    set(file ${command})
    if(TARGET ${command})
        add_dependencies(mpi_tests ${command})
        set(file $<TARGET_FILE:${command}>)
    endif()
    kilter_mpi_launcher_flags(flags)
    add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${flags} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${file} ${ARGN})
    # Open MPI refuses root unless told twice.
    set_tests_properties(${name} PROPERTIES LABELS mpi TIMEOUT 120 PROCESSORS ${ranks}
                         ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
endfunction()

# The same, where the launcher lets ranks outlive those that are killed. Its exit code says little then: the test has
# passed when COMMAND prints SAYS.
function(kilter_mpi_survivors_test name says ranks command)
    kilter_mpi_launcher_flags(flags)
    if(NOT flags)
        set(flags -disable-auto-cleanup) # MPICH
    endif()
    add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${flags} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${command}>
                                  ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS mpi TIMEOUT 120 PROCESSORS ${ranks} PASS_REGULAR_EXPRESSION ${says}
        ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_orte_enable_recovery=1;KILTER_MPI_SHIELD=1")
endfunction()

# More ranks than cores are wanted here, and no binding: each mpirun would bind its first rank to the first core.
function(kilter_mpi_launcher_flags out)
    execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE version ERROR_VARIABLE version)
    set(flags "")
    if(version MATCHES "Open MPI|OpenRTE")
        set(flags --oversubscribe --bind-to none)
    endif()
    set(${out} ${flags} PARENT_SCOPE)
endfunction()
