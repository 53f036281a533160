/** The mean of courses that end at the same time; what is not known is left out. */
export function meanCourse(courses: (number | null)[][]): (number | null)[] {
  const length = Math.max(0, ...courses.map((course) => course.length));
  return Array.from({ length }, (_, back) => {
    const known = courses
      .map((course) => course[course.length - length + back])
      .filter((one): one is number => typeof one === "number");
    return known.length ? known.reduce((all, one) => all + one, 0) / known.length : null;
  });
}
