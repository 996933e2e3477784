// Builds a closed tour: reads the number of cities and their coordinates, prints their order.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int n;
static double x[1000], y[1000];

static double distance(int a, int b) { return hypot(x[a] - x[b], y[a] - y[b]); }

// EVOLVE-BLOCK-START
// Fills tour[0..n-1] with every city once, beginning with city 0.
static void build_tour(int *tour) {
    static int visited[1000];
    tour[0] = 0;
    visited[0] = 1;
    for (int step = 1; step < n; step++) {
        int here = tour[step - 1], best = -1;
        double least = HUGE_VAL;
        for (int city = 0; city < n; city++) {
            if (visited[city]) continue;
            double onward = 0.0;
            for (int other = 0; other < n; other++)
                if (!visited[other]) onward += distance(city, other);
            double cost = 1.0 * distance(here, city) + 0.5 * distance(0, city) + 0.5 * onward / n;
            if (cost < least) {
                least = cost;
                best = city;
            }
        }
        tour[step] = best;
        visited[best] = 1;
    }
}
// EVOLVE-BLOCK-END

int main(void) {
    static int tour[1000];
    if (scanf("%d", &n) != 1 || n < 1 || n > 1000) return 1;
    for (int k = 0; k < n; k++)
        if (scanf("%lf %lf", &x[k], &y[k]) != 2) return 1;
    build_tour(tour);
    for (int k = 0; k < n; k++) printf("%d\n", tour[k]);
    return 0;
}
