/* Preloaded into the ranks of tests under the address sanitizer: no module is unloaded. Open MPI unloads its
 * own at the end. The sanitizer cannot name a function of a module that is gone, nor leave out its leaks. */
__attribute__((visibility("default"))) int dlclose(void *handle);

int dlclose(void *handle) {
    (void)handle;
    return 0;
}
