# kilter_purposes(): label each test of this folder with its purpose (quick, check or soak), as tests/purposes.txt says. Each CMakeLists.txt
# that adds tests calls it last. Under a sanitizer, the function also gives the tests more time, and makes a test fail if it prints a report of
# the sanitizer. Configuration fails if a test is not in tests/purposes.txt. A test has the same purpose under both MPIs.
set(KILTER_PURPOSES ${PROJECT_SOURCE_DIR}/tests/purposes.txt)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KILTER_PURPOSES})
file(STRINGS ${KILTER_PURPOSES} KILTER_PURPOSE_LINES REGEX "^(quick|check|soak) ")

function(kilter_purposes)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(test ${tests})
        kilter_purpose_of(${test} purpose)
        set_property(TEST ${test} APPEND PROPERTY LABELS ${purpose})
        if(KILTER_SANITIZE) # A report of the sanitizer fails the test, whichever process of the test prints the report.
            set_property(TEST ${test} APPEND PROPERTY FAIL_REGULAR_EXPRESSION "Sanitizer: [a-zA-Z]|runtime error: ")
            set_property(TEST ${test} PROPERTY TIMEOUT 600)
            get_property(labels TEST ${test} PROPERTY LABELS)
            if(mpi IN_LIST labels) # Options of the sanitizers: the MPI libraries have no frame pointers, and loops handle SIGSEGV themselves.
                set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT LD_PRELOAD=$<TARGET_FILE:keep_modules>
                    "ASAN_OPTIONS=fast_unwind_on_malloc=0:handle_segv=0")
            endif()
        endif()
    endforeach()
endfunction()

function(kilter_purpose_of test out) # set `out` to the test's purpose; the first line of tests/purposes.txt whose pattern matches the whole test name gives it
    string(REGEX REPLACE "-mpich$" "" test ${test})
    foreach(line ${KILTER_PURPOSE_LINES})
        string(REGEX MATCH "^([a-z]+) +([^ ]+)" matched "${line}")
        set(purpose ${CMAKE_MATCH_1})
        if(test MATCHES "^(${CMAKE_MATCH_2})$")
            set(${out} ${purpose} PARENT_SCOPE)
            return()
        endif()
    endforeach()
    message(FATAL_ERROR "tests/purposes.txt has no line for the test ${test}: add one")
endfunction()
