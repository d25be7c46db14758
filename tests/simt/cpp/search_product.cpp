#define GRAPH_MOVES 3
#define EXPLORE_RANKS 0
#define GRAPH_NAME warpset_simt_search_product
#define GRAPH_NAMED(kernel) kernel##_of_product
#include "search.inl"
