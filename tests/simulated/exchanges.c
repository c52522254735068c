/* Carries out the exchanges of a launch under SimGrid's MPI, SMPI, and prints the simulated seconds.
 *
 * Argument: a folder with a file for each rank, named by its number, of one line for each exchange. It begins with the
 * number of times and the colour:
 *
 *   TIMES gather COLOUR IN_PLACE N BYTES...           MPI_Allgatherv of N blocks of so many bytes
 *   TIMES scatter COLOUR N ELEMENTS...                MPI_Reduce_scatter of N shares of so many floats
 *   TIMES reduce COLOUR ELEMENTS                      MPI_Allreduce of so many floats
 *   TIMES exscan COLOUR ELEMENTS                      the sums of all ranks before, of so many floats
 *   TIMES spread COLOUR N SENT... RECEIVED...         so many bytes to and from each rank
 *   TIMES sendrecv COLOUR DEST SOURCE SENT RECEIVED   MPI_Sendrecv of so many bytes, -1 where there is no rank
 *
 * Ranks of the same colour take part together; of colour -1 all.
 */
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 32 };

typedef struct {
  char kind[16];
  int times, in_place, count, dest, source, coming;
  int *sizes, *places, *received, *received_at;
  char *from, *to;
  MPI_Comm line;
} exchange;

static int *read_sizes(FILE *file, int count) {
  int *sizes = malloc(sizeof(int) * (count + 1));
  for (int at = 0; at < count; at++)
    if (fscanf(file, "%d", &sizes[at]) != 1) abort();
  return sizes;
}

static int *places_of(const int *sizes, int count, long *total) {
  int *places = malloc(sizeof(int) * (count + 1));
  *total = 0;
  for (int at = 0; at < count; at++) {
    places[at] = (int)*total;
    *total += sizes[at];
  }
  return places;
}

static int read_exchange(FILE *file, exchange *each, long *most_sent, long *most_received) {
  int colour, rank;
  if (fscanf(file, "%d %15s %d", &each->times, each->kind, &colour) != 3) return 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  each->line = MPI_COMM_WORLD;
  if (colour >= 0) MPI_Comm_split(MPI_COMM_WORLD, colour, rank, &each->line);
  long sent = 0, total = 0;
  if (!strcmp(each->kind, "sendrecv")) {
    if (fscanf(file, "%d %d %d %d", &each->dest, &each->source, &each->count, &each->coming) != 4) abort();
    each->dest = each->dest < 0 ? MPI_PROC_NULL : each->dest;
    each->source = each->source < 0 ? MPI_PROC_NULL : each->source;
    sent = each->count;
    total = each->coming;
  } else if (!strcmp(each->kind, "reduce") || !strcmp(each->kind, "exscan")) {
    if (fscanf(file, "%d", &each->count) != 1) abort();
    sent = total = 4L * each->count;
  } else {
    each->in_place = 0;
    if (!strcmp(each->kind, "gather") && fscanf(file, "%d", &each->in_place) != 1) abort();
    if (fscanf(file, "%d", &each->count) != 1) abort();
    each->sizes = read_sizes(file, each->count);
    each->places = places_of(each->sizes, each->count, &total);
    sent = total;
    if (!strcmp(each->kind, "scatter")) sent = total = 4 * total;
    if (!strcmp(each->kind, "spread")) {
      each->received = read_sizes(file, each->count);
      each->received_at = places_of(each->received, each->count, &total);
    }
  }
  *most_sent = sent > *most_sent ? sent : *most_sent;
  *most_received = total > *most_received ? total : *most_received;
  return 1;
}

/* All to all as MPICH does it, so many messages at once. SMPI starts all of them, and a million take hours. */
static void spread(const exchange *each, int rank) {
  MPI_Request requests[2 * AT_ONCE];
  for (int first = 0; first < each->count; first += AT_ONCE) {
    int count = 0, most = first + AT_ONCE < each->count ? first + AT_ONCE : each->count;
    for (int at = first; at < most; at++) {
      int source = (rank + at) % each->count;
      if (source != rank && each->received[source])
        MPI_Irecv(each->to + each->received_at[source], each->received[source], MPI_BYTE, source, 0, each->line,
                  &requests[count++]);
    }
    for (int at = first; at < most; at++) {
      int target = (rank - at + each->count) % each->count;
      if (target != rank && each->sizes[target])
        MPI_Isend(each->from + each->places[target], each->sizes[target], MPI_BYTE, target, 0, each->line,
                  &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }
}

/* MPI_Exscan by recursive doubling, as MPICH does it: SMPI has every rank send to all after it. */
static void exscan(const exchange *each, int rank) {
  int ranks;
  MPI_Comm_size(each->line, &ranks);
  for (int apart = 1; apart < ranks; apart *= 2) {
    int partner = (rank ^ apart) < ranks ? rank ^ apart : MPI_PROC_NULL;
    MPI_Sendrecv(each->from, each->count, MPI_FLOAT, partner, 0, each->to, each->count, MPI_FLOAT, partner, 0,
                 each->line, MPI_STATUS_IGNORE);
  }
}

static void run(const exchange *each) {
  int rank;
  MPI_Comm_rank(each->line, &rank);
  for (int time = 0; time < each->times; time++) {
    if (!strcmp(each->kind, "gather")) {
      const void *own = each->in_place ? MPI_IN_PLACE : each->from;
      MPI_Allgatherv(own, each->sizes[rank], MPI_BYTE, each->to, each->sizes, each->places, MPI_BYTE, each->line);
    } else if (!strcmp(each->kind, "scatter")) {
      MPI_Reduce_scatter(each->from, each->to, each->sizes, MPI_FLOAT, MPI_SUM, each->line);
    } else if (!strcmp(each->kind, "reduce")) {
      MPI_Allreduce(each->from, each->to, each->count, MPI_FLOAT, MPI_SUM, each->line);
    } else if (!strcmp(each->kind, "exscan")) {
      exscan(each, rank);
    } else if (!strcmp(each->kind, "spread")) {
      spread(each, rank);
    } else {
      MPI_Sendrecv(each->from, each->count, MPI_BYTE, each->dest, 0, each->to, each->coming, MPI_BYTE, each->source, 0,
                   each->line, MPI_STATUS_IGNORE);
    }
  }
}

int main(int argc, char **argv) {
  int rank, count = 0, room = 16;
  long most_sent = 0, most_received = 0;
  char path[4096];
  exchange *found = malloc(sizeof(exchange) * room);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/%d", argv[1], rank);
  FILE *file = fopen(path, "r");
  if (!file) abort();
  while (read_exchange(file, &found[count], &most_sent, &most_received))
    if (++count == room) found = realloc(found, sizeof(exchange) * (room *= 2));
  fclose(file);
  /* Ranks of one process share this memory: what is in it does not matter. */
  char *from = SMPI_SHARED_MALLOC(most_sent + 64), *to = SMPI_SHARED_MALLOC(most_received + 64);
  for (int at = 0; at < count; at++) found[at].from = from, found[at].to = to;
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime(), end, first, last;
  for (int at = 0; at < count; at++) run(&found[at]);
  end = MPI_Wtime();
  MPI_Allreduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("%.9e\n", last - first);
  MPI_Finalize();
  return 0;
}
