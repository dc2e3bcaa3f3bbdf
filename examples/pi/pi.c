/*
 * Pi, as the area under 4 / (1 + x*x) between 0 and 1: each rank adds up its share of the strips.
 *
 * Every rank says where it runs; rank 0 prints the sum for ever thinner strips.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

static const double PI = 3.14159265358979323846;

static double share(int rank, int ranks, long strips)
{
    double width = 1.0 / (double)strips, sum = 0.0;
    for (long strip = rank; strip < strips; strip += ranks) {
        double x = width * ((double)strip + 0.5);
        sum += 4.0 / (1.0 + x * x);
    }
    return sum * width;
}

int main(int argc, char **argv)
{
    int rank, ranks, length;
    char host[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_processor_name(host, &length);
    printf("rank %d of %d runs on %s\n", rank, ranks, host);
    fflush(stdout);

    for (long strips = 100; strips <= 100000000; strips *= 100) {
        double part = share(rank, ranks, strips), sum;
        MPI_Reduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%9ld strips: pi is about %.12f, off by %.0e\n", strips, sum, fabs(sum - PI));
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
