/* Prevent Open MPI from unloading its modules when a program ends. Tests under the address sanitizer load
 * this library into their ranks (LD_PRELOAD). After a module is unloaded, the sanitizer can neither name its
 * functions nor suppress its leaks. */
__attribute__((visibility("default"))) int dlclose(void *handle);

int dlclose(void *handle) {
    (void)handle;
    return 0;
}
