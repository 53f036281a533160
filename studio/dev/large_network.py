"""Write a network of many boxes, to try the studio: python large_network.py 500 > large.yaml"""

import sys


def large(boxes: int) -> str:
    """Applications of ten boxes each: a filter, two branches of maps, a union, an aggregate."""
    lines = [
        "network: large",
        "streams:",
        "  readings:",
        "    schema: {machine: string, at: timestamp, celsius: double, bar: double}",
        "    progress: {on: at, delay: 2 seconds}",
        "boxes:",
    ]
    outputs = []
    for app in range(boxes // 10):
        name = f"a{app}"
        lines.append(f"  {name}_pick: {{box: filter, input: readings, where: celsius > {app}}}")
        lines.append(f'  {name}_m0: {{box: map, input: {name}_pick, keep: "*"}}')
        for step in range(1, 4):
            lines.append(f'  {name}_m{step}: {{box: map, input: {name}_m{step - 1}, keep: "*"}}')
        lines.append(f'  {name}_n0: {{box: map, input: {name}_pick.rest, keep: "*"}}')
        lines.append(f"  {name}_n1: {{box: filter, input: {name}_n0, where: bar > 5}}")
        lines.append(f'  {name}_n2: {{box: map, input: {name}_n1, keep: "*"}}')
        lines.append(f"  {name}_both: {{box: union, inputs: [{name}_m3, {name}_n2]}}")
        lines.append(
            f"  {name}_mean: {{box: aggregate, input: {name}_both,"
            " order: {on: at, by: [machine]}, window: {size: 1 minute},"
            " compute: {mean: avg(celsius)}}"
        )
        outputs.append(f"  out{app}: {{from: {name}_mean}}")
    return "\n".join([*lines, "outputs:", *outputs, ""])


if __name__ == "__main__":
    sys.stdout.write(large(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
