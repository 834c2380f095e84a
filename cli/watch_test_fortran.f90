! A stencil in Fortran for the test of kilter watch: 50 iterations of three calls.
program watched
    use mpi
    implicit none
    integer :: error, rank, ranks, i, from, to
    double precision :: mine, theirs, total
    call mpi_init(error)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
    call mpi_comm_size(MPI_COMM_WORLD, ranks, error)
    to = mod(rank + 1, ranks)
    from = mod(rank + ranks - 1, ranks)
    mine = rank
    do i = 1, 50
        call mpi_sendrecv(mine, 1, MPI_DOUBLE_PRECISION, to, 0, theirs, 1, MPI_DOUBLE_PRECISION, from, 0, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call mpi_barrier(MPI_COMM_WORLD, error)
        call mpi_allreduce(theirs, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    end do
    if (abs(total - ranks * (ranks - 1) / 2) > 1d-9) call mpi_abort(MPI_COMM_WORLD, 1, error)
    call mpi_finalize(error)
end program
