import scala.util.Try

object Metering {
  val MaxRetryCount = 3

  class Meter(private[this] val unit: String)

  object Meter {
    def apply(unit: String): Meter = new Meter(unit)
    def apply(): Meter = new Meter("kWh")
  }

  sealed trait Shape
  case class Circle(size: Int) extends Shape
  case class Square(size: Int) extends Shape

  def describe(shape: Shape): String = shape match {
    case Circle(size) => s"round $size"
    case Square(size) => s"even $size"
  }

  def findOwner(meters: Map[String, Owned], key: String): Option[String] = meters.get(key).map(_.owner)

  def doubledWithTrace(xs: List[Int]): List[Int] =
    xs.map(_ * 2).tapEach(x => println(s"doubled $x"))

  def total(xs: List[Int]): Int = xs.foldLeft(0)(_ + _)

  def numbered(xs: List[String]): List[(String, Int)] = xs.zipWithIndex

  def save(meter: Meter): Unit = {
    db.save(meter)
  }
}
